"""What runs in the reader's browser, in Pyodide: standard library only, and the same code sorts the cells when the book is built."""
