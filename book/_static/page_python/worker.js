// Python in a worker. It is sent { manifest, request } for each run, and says [kind, ...]: what page_python.session tells, and
// "load" with bytes, "stage" with words, "done", "broken" with a sentence and its reason.
"use strict";
const LARGEST = 768 * 1024 * 1024; // bytes of memory, so that Python runs out of it before the browser does
const say = (...said) => postMessage(said);

let folder, session, ready = false, drawing;
onmessage = async ({ data: { manifest, request } }) => {
  try {
    folder = new URL(manifest.folder);
    const { python, made } = await (session ??= start(manifest));
    const asked = JSON.stringify(request);
    if (made.draws(asked)) await (drawing ??= loadMatplotlib(python, manifest));
    made.run(asked);
    say("done");
  } catch (error) {
    broken(error);
  }
};

async function start(manifest) {
  capMemory();
  expect(manifest.files);
  importScripts(new URL("pyodide.js", folder));
  const library = fetch(new URL(manifest.book, folder)).then((got) => got.arrayBuffer());
  const python = await loadPyodide({
    indexURL: folder.href,
    packages: ["numpy"],
    stdout: () => {},
    stderr: () => {},
    env: { HOME: "/home/pyodide", MPLBACKEND: "svg" },
    jsglobals: { setTimeout: setTimeout.bind(self), clearTimeout: clearTimeout.bind(self) },
  });
  say("stage", "Loading the book’s library");
  python.unpackArchive(await library, "zip");
  for (const path of manifest.weights) { // each is fetched when it is read
    const at = path.lastIndexOf("/"), parent = `/home/pyodide/${path.slice(0, at)}`;
    python.FS.mkdirTree(parent);
    python.FS.createLazyFile(parent, path.slice(at + 1), new URL(path, folder).href, true, false);
  }
  const made = python.pyimport("page_python.session").Session(say);
  python.runPython("import attention_lib.checks");
  lockUp();
  ready = true;
  return { python, made };
}

async function loadMatplotlib(python, manifest) {
  expect(manifest.pictures);
  const names = Object.keys(manifest.pictures).map((file) => file.split("-")[0].replaceAll("_", "-"));
  await python.loadPackage(names, { messageCallback: () => {} });
  say("stage", "Starting Matplotlib");
}

function capMemory() {
  const { Memory } = WebAssembly;
  WebAssembly.Memory = function (limits) {
    return new Memory({ ...limits, maximum: Math.min(limits.maximum, LARGEST / 65536) });
  };
}

// What is fetched next, for the progress: by name the bytes of each file, and those that are sent of it.
let expected = {}, came = {};
function expect(sizes) { expected = sizes; came = {}; }

const get = self.fetch.bind(self);
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const inside = (address) => new URL(address, folder).href.startsWith(folder.href);
const refuse = () => { throw new Error("The page’s Python reaches nothing but this book."); };

self.fetch = async (address, options) => {
  const url = new URL(address.url ?? address, folder);
  if (!inside(url)) refuse();
  try {
    const name = url.pathname.split("/").pop(), response = await get(url, options);
    if (!response.ok) throw new Error(`${name}: ${response.status}`);
    if (name in expected) count(name, response.clone().body.getReader()).catch(broken);
    return response;
  } catch (error) {
    broken(error);
    throw error;
  }
};

async function count(name, reader) {
  const [whole, packed] = expected[name];
  for (let bytes = 0, told = 0, over = false; !over;) {
    const { done, value } = await reader.read();
    bytes += value?.length ?? 0;
    over = done;
    came[name] = Math.round((packed * bytes) / whole);
    if (over || performance.now() - told > 100) {
      say("load", sum(Object.values(came)), sum(Object.values(expected).map(([, packed]) => packed)));
      told = performance.now();
    }
  }
}

function broken(error) {
  say("broken", ready ? "Python ended" : "Python could not be loaded", String(error?.message ?? error).slice(-300));
}

// From here on nothing else is loaded, and nothing is asked of any other address.
function lockUp() {
  const { open } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, address, ...rest) {
    return inside(address) ? open.call(this, method, address, ...rest) : refuse();
  };
  for (const name of ["WebSocket", "WebSocketStream", "WebTransport", "EventSource", "Worker", "importScripts"]) {
    if (name in self) self[name] = refuse;
  }
}
