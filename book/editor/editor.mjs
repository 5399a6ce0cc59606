// The editor of the page: CodeMirror with what Python needs. `npm install && npm run build` here remakes ../_static/page_python/editor.js.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { pythonLanguage } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

// An editor in `parent`. changed(text) hears of each change; run() of Shift-Enter, Ctrl-Enter or Cmd-Enter.
export function edit(parent, { text, label, describedBy, changed, run }) {
  const runs = ["Shift-Enter", "Mod-Enter"].map((key) => ({ key, run: () => (run(), true) }));
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        history(),
        indentUnit.of("    "),
        indentOnInput(),
        bracketMatching(),
        EditorView.lineWrapping,
        pythonLanguage,
        syntaxHighlighting(classHighlighter),
        keymap.of([...runs, indentWithTab, ...defaultKeymap, ...historyKeymap]),
        EditorView.contentAttributes.of({
          "aria-label": label, "aria-describedby": describedBy, tabindex: "0", autocapitalize: "off", spellcheck: "false",
        }),
        EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    replace: (insert) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert } }),
    focus: () => view.focus(),
  };
}
