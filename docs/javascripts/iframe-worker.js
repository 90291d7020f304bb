// The theme's search runs in a Worker, which browsers refuse to pages opened from a folder. There a hidden frame
// of the same page takes its place: the worker's script runs in it, and messages go both ways as events.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      this.inside = this.frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.inside.document.createElement("script");
      script.src = new URL(url, document.baseURI);
      script.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        for (const data of waiting) this.postMessage(data);
      };
      script.onerror = () => this.dispatchEvent(new Event("error"));
      this.inside.document.body.appendChild(script);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
