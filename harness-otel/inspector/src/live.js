// Follows a session: when its log has grown, the parts of the page that nobody types in are replaced.
(() => {
  "use strict";
  const body = document.querySelector("[data-events]");
  if (!body || !window.EventSource) return;
  const lamp = document.querySelector(".live");
  const changed = document.getElementById("changed");
  const say = (text, on) => {
    if (!lamp) return;
    lamp.textContent = text;
    lamp.classList.toggle("on", on);
  };
  let busy = false, again = false;
  const busyIn = (part) => part.contains(document.activeElement) ||
    [...part.querySelectorAll("input:not([type=hidden]),textarea,select")].some((field) =>
      field.type === "radio" || field.type === "checkbox"
        ? field.checked !== field.defaultChecked
        : field.tagName === "SELECT" ? false : field.value !== field.defaultValue);
  const refresh = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const part of document.querySelectorAll("[data-part]")) {
          const other = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
          if (!other || other.outerHTML === part.outerHTML) continue;
          const form = part.dataset.version !== undefined;
          if (form && other.dataset.version === part.dataset.version) continue;
          if (form && busyIn(part)) {
            if (changed) changed.hidden = false;
            continue;
          }
          const open = new Set([...part.querySelectorAll("li[id]")].filter((it) => it.querySelector("details[open]")).map((it) => it.id));
          part.replaceWith(document.adoptNode(other));
          for (const id of open) document.getElementById(id)?.querySelector("details")?.setAttribute("open", "");
        }
      }
    } catch { /* The next event tries again. */ }
    busy = false;
    if (again) { again = false; refresh(); }
  };
  const events = new EventSource(body.dataset.events);
  events.addEventListener("open", () => say("live", true));
  events.addEventListener("error", () => say("not connected", false));
  events.addEventListener("head", refresh);
})();
