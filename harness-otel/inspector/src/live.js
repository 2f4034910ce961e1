// Follows a session: when its log has grown, the page becomes what the server says it is now.
(() => {
  "use strict";
  const body = document.querySelector("[data-events]");
  if (!body || !window.EventSource) return;
  const lamp = document.querySelector(".live");
  const changed = document.getElementById("changed");
  const say = (text, on) => {
    if (!lamp || lamp.textContent === text) return;
    lamp.textContent = text;
    lamp.classList.toggle("on", on);
  };
  const keyOf = (node) => node.nodeType === 1 ? node.id || node.getAttribute("aria-labelledby") || "" : "";
  const same = (one, other) => one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
  // Changes only what differs, so that a reader keeps the focus, what is selected, open and scrolled.
  const become = (old, now) => {
    if (old.nodeType !== 1) {
      if (old.data !== now.data) old.data = now.data;
      return;
    }
    const stays = (name) => name === "open" && old.localName === "details";
    for (const { name } of [...old.attributes]) {
      if (!now.hasAttribute(name) && !stays(name)) old.removeAttribute(name);
    }
    for (const { name, value } of now.attributes) {
      if (old.getAttribute(name) !== value && !stays(name)) old.setAttribute(name, value);
    }
    const named = new Map([...old.children].filter(keyOf).map((it) => [keyOf(it), it]));
    const gone = new Set(old.childNodes);
    let here = old.firstChild;
    for (const next of [...now.childNodes]) {
      const known = named.get(keyOf(next));
      if (known && gone.has(known) && same(known, next)) {
        // What is before it, is no longer there: rows are added at the end.
        while (here && here !== known) here = here.nextSibling;
        if (!here) old.append(known);
        here = known;
      }
      if (here && gone.has(here) && same(here, next)) {
        gone.delete(here);
        become(here, next);
        here = here.nextSibling;
      } else {
        old.insertBefore(document.adoptNode(next), here);
      }
    }
    for (const node of gone) node.remove();
  };
  const busyIn = (part) => part.contains(document.activeElement) ||
    [...part.querySelectorAll("input:not([type=hidden]),textarea,select")].some((field) =>
      field.type === "radio" || field.type === "checkbox"
        ? field.checked !== field.defaultChecked
        : field.tagName === "SELECT" ? false : field.value !== field.defaultValue);
  const update = (part, other) => {
    const version = part.dataset.version;
    if (version === undefined) return become(part, other);
    if (other.dataset.version === version) return;
    // What a person is filling in stays, and the page says that it has changed.
    if (busyIn(part)) {
      if (changed) changed.hidden = false;
    } else {
      part.replaceWith(document.adoptNode(other));
    }
  };
  let busy = false, again = false;
  const refresh = async () => {
    if (busy) { again = true; return; }
    busy = true;
    const begun = performance.now();
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const part of document.querySelectorAll("[data-part]")) {
          const other = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
          if (other) update(part, other);
        }
      }
    } catch { /* The next event tries again. */ }
    // A session that changes all the time, or is large, leaves the server half of the time.
    setTimeout(() => {
      busy = false;
      if (again) { again = false; refresh(); }
    }, performance.now() - begun);
  };
  let events;
  const follow = () => {
    if (events) events.close();
    events = new EventSource(body.dataset.events);
    events.addEventListener("open", () => say("live", true));
    events.addEventListener("head", refresh);
    events.addEventListener("error", () => {
      say("not connected", false);
      // A browser tries again by itself, unless the answer was an error.
      if (events.readyState === EventSource.CLOSED) setTimeout(() => document.hidden || follow(), 3000);
    });
  };
  // A browser has few connections for one server: a page that is not seen needs none.
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return follow();
    events.close();
    say("paused", false);
  });
  follow();
})();
