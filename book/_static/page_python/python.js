// The page's one Python: a worker that is started when it is first asked, and ended when it does not answer.

export class Python {
  #worker; #current; #clock; #queue = Promise.resolve();

  constructor(manifest) { this.manifest = manifest; }

  // Runs a request, after those before it. hear(kind, ...) is told what the worker says; resolves when that is all.
  ask(request, hear) {
    const mine = { request, hear, cancelled: false };
    this.#queue = this.#queue.then(() => mine.cancelled || this.#send(mine));
    return { done: this.#queue, stop: () => this.#stop(mine) };
  }

  #send(mine) {
    return new Promise((resolve) => {
      this.#current = { ...mine, mine, resolve };
      if (!this.#worker) this.#start();
      this.#worker.postMessage({ manifest: this.manifest, request: mine.request });
    });
  }

  #start() {
    this.#worker = new Worker(new URL("worker.js", import.meta.url));
    this.#worker.onmessage = ({ data: [kind, ...said] }) => {
      if (!this.#current) return;
      if (kind === "above" || kind === "running") this.#watch();
      if (kind === "done") return this.#end();
      if (kind === "broken") return this.#kill(kind, ...said);
      this.#current.hear(kind, ...said);
    };
    this.#worker.onerror = (event) => { event.preventDefault(); this.#kill("broken", "Python ended", event.message ?? ""); };
    this.#current.hear("load", 0, Object.values(this.manifest.files).reduce((sum, [, packed]) => sum + packed, 0));
  }

  #watch() {
    const { seconds } = this.manifest;
    clearTimeout(this.#clock);
    this.#clock = setTimeout(() => this.#kill("late", seconds), 1000 * seconds);
  }

  #stop(mine) {
    mine.cancelled = true;
    if (this.#current?.mine === mine) this.#kill("stopped");
    else mine.hear("stopped");
  }

  #kill(...said) {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#end(...said);
  }

  #end(...said) {
    clearTimeout(this.#clock);
    const current = this.#current;
    this.#current = undefined;
    if (said.length) current?.hear(...said);
    current?.resolve();
  }
}
