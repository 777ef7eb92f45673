// Keeps the page up to date: when the server says that there is something new, the same page is
// fetched once more, and the parts of it that have changed take the place of the old ones.
"use strict";
(() => {
  let busy = false, again = false;

  // What somebody is working with stays as it is.
  const kept = (part) => part.classList.contains("keep") && part.id !== "preview";
  const opened = (part) => new Set([...part.querySelectorAll("details[open][id]")].map((d) => d.id));

  function takeOver(old, fresh) {
    if (old.outerHTML === fresh.outerHTML) return;
    const open = opened(old);
    for (const d of fresh.querySelectorAll("details[id]")) d.open = open.has(d.id);
    const places = [...old.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
    old.replaceWith(fresh);
    fresh.querySelectorAll(".scroll").forEach((s, i) => { s.scrollLeft = places[i] || 0; });
  }

  async function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
      if (!answer.ok) return;
      const text = await answer.text();
      const fresh = new DOMParser().parseFromString(text, "text/html");
      const main = document.getElementById("main"), other = fresh.getElementById("main");
      if (!main || !other) return;
      main.dataset.version = other.dataset.version;
      const status = fresh.getElementById("status");
      if (status) document.getElementById("status")?.replaceWith(document.importNode(status, true));
      for (const part of [...other.children]) {
        const old = part.id && document.getElementById(part.id);
        const copy = document.importNode(part, true);
        if (!old) main.append(copy);
        else if (!kept(old)) takeOver(old, copy);
        else for (const line of copy.querySelectorAll("#held")) document.getElementById("held")?.replaceWith(line);
      }
      for (const part of [...main.children]) {
        if (part.id && part.id !== "preview" && !other.querySelector("#" + CSS.escape(part.id))) part.remove();
      }
    } catch (error) {
      // The console was stopped, or the machine sleeps: the next event tries again.
    } finally {
      busy = false;
      if (again) { again = false; refresh(); }
    }
  }

  const news = new EventSource("events");
  news.addEventListener("news", refresh);
  news.addEventListener("error", () => {
    const status = document.getElementById("status");
    if (status) { status.className = "badge warn"; status.textContent = "the console does not answer"; }
  });
  news.addEventListener("open", refresh);
  setInterval(refresh, 15000);
})();
