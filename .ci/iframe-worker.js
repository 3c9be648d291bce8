// The search of the site runs in a worker, which browsers refuse to start from a file. For a page
// that was opened as a file, this stands in for the worker: an iframe of the same page.
if (window.location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.appendChild(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.inner.document.createElement("script");
      script.src = new URL(address, document.baseURI).href;
      script.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      };
      this.inner.document.body.appendChild(script);
    }

    postMessage(data) {
      if (this.waiting) {
        this.waiting.push(data);
      } else {
        this.inner.dispatchEvent(new MessageEvent("message", { data }));
      }
    }
  };
}
