/* In place of the theme's 1.5 MB of icons, of which the book needs ten: those are in book.css. */
