// Live updates of a page, whose element <ol data-live="/runs/r-7/live" data-after="41"> gets an item
// for each event after number 41. Without this script, or its stream, the page is whole: reload it.
//
// HTTP/1.1 leaves a browser six connections to a site, and a stream holds one. So a browser has at
// most three streams, counted by locks that all its tabs share; further tabs ask every five seconds.
"use strict";

const STREAMS_MAX = 3;
const POLL_MS = 5000;
const ITEMS_MAX = 500; // shown at a time; the page of the log has them all

function show(list, event) {
  const item = document.createElement("li");
  item.dataset.seq = event.seq;
  item.textContent = event.text || JSON.stringify(event);
  list.append(item);
  while (list.children.length > ITEMS_MAX) list.firstElementChild.remove();
  list.dataset.after = event.seq;
}

// Ends when the run has ended: then the page says more.
function stream(list) {
  return new Promise((resolve) => {
    const source = new EventSource(list.dataset.live + "?after=" + (list.dataset.after || 0));
    source.onmessage = (message) => show(list, JSON.parse(message.data));
    source.addEventListener("end", () => {
      source.close();
      list.dataset.state = "ended";
      resolve();
    });
  });
}

async function poll(list) {
  for (;;) {
    const answer = await fetch(list.dataset.live + ".json?after=" + (list.dataset.after || 0));
    if (answer.ok) {
      const body = await answer.json();
      for (const event of body.events) show(list, event);
      if (body.ended) {
        list.dataset.state = "ended";
        return;
      }
    }
    await new Promise((wake) => setTimeout(wake, POLL_MS));
  }
}

// The stream number `n`, if no tab has it; else the next one; after the last, polling.
function follow(list, n) {
  if (n > STREAMS_MAX) return poll(list);
  return navigator.locks.request("assay-live-" + n, { ifAvailable: true }, (lock) =>
    lock ? stream(list).then(() => true) : false
  ).then((had) => had || follow(list, n + 1));
}

for (const list of document.querySelectorAll("[data-live]")) {
  if (window.EventSource && navigator.locks) follow(list, 1);
  else poll(list);
}
