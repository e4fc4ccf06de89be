// Browsers refuse workers for pages that are opened as files. Here such a worker is a hidden frame that loads the same
// script: its postMessage goes to the page, and messages of the page arrive as its message events.
(function () {
  "use strict";
  if (window.location.protocol !== "file:") return;

  function frameSource(url) {
    return (
      "<!doctype html><script>" +
      "var postMessage = function (data) { parent.dispatchEvent(new CustomEvent(" +
      JSON.stringify("worker:" + url) + ", { detail: data })); };" +
      "var loading = Promise.resolve();" +
      "var importScripts = function () {" +
      "  Array.prototype.forEach.call(arguments, function (file) {" +
      "    loading = loading.then(function () { return new Promise(function (done) {" +
      "      var script = document.createElement('script');" +
      "      script.src = file; script.onload = script.onerror = done; document.head.appendChild(script);" +
      "    }); });" +
      "  });" +
      "  return loading;" +
      "};" +
      "importScripts(" + JSON.stringify(url) + ");" +
      "<\/script>"
    );
  }

  function FrameWorker(url) {
    var worker = new EventTarget();
    var frame = document.createElement("iframe");
    var waiting = [];
    worker.onmessage = null;
    window.addEventListener("worker:" + url, function (event) {
      var message = new MessageEvent("message", { data: event.detail });
      worker.dispatchEvent(message);
      if (worker.onmessage) worker.onmessage(message);
    });
    function send(data) {
      frame.contentWindow.dispatchEvent(new frame.contentWindow.MessageEvent("message", { data: data }));
    }
    worker.postMessage = function (data) {
      if (waiting) waiting.push(data);
      else send(data);
    };
    worker.terminate = function () { frame.remove(); };
    frame.hidden = true;
    frame.srcdoc = frameSource(String(url));
    frame.onload = function () {
      frame.contentWindow.loading.then(function () {
        var queue = waiting;
        waiting = null;
        queue.forEach(send);
      });
    };
    document.body.appendChild(frame);
    return worker;
  }

  window.Worker = FrameWorker;
})();
