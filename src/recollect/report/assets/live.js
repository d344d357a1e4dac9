// Live updates: the server announces new versions of the page in a stream of events. Without a stream, the page asks
// every second. A new version replaces the content, and what the reader had set is restored: scroll position, order of
// tables, opened parts, switched lines, focus.
const INTERVAL = 1000, RETRY_INTERVAL = 3000; // milliseconds between two requests
const REOPEN_INTERVAL = 30000; // milliseconds after which a stream that was refused is asked for again
const TIMEOUT = 30000; // milliseconds that a response may take
const MAX_DRAWING = 2000; // milliseconds that figures in view may take before the new content is shown anyway
const HOVER_TIME = 3000; // milliseconds after a pointer move for which the label of a figure is kept

const bar = document.getElementById("live");
const state = document.getElementById("live-state");
const trouble = document.getElementById("live-trouble");
const pause = document.getElementById("live-pause");
const address = new URL(location.href);
address.searchParams.delete("token"); // the cookie has it
history.replaceState(history.state, "", address);
address.hash = "";

let version = bar.dataset.version;
let working = start(document.getElementById("main"));
let down = false, moved = -Infinity, wake = null;
let stream = null, opened = -Infinity, announced = null; // announced: the current version, null while it is unknown

// Runs the scripts of the page on the content of an element; the returned controller ends their listeners.
function start(root) {
  const ending = new AbortController(), { signal } = ending, ready = [];
  const scoped = new Proxy(document, {
    get(target, name) {
      if (name === "querySelectorAll") return (selector) => root.querySelectorAll(selector);
      return typeof target[name] === "function" ? target[name].bind(target) : target[name];
    },
  });
  const listen = (type, listener) => {
    if (type === "DOMContentLoaded") ready.push(listener);
    else addEventListener(type, listener, { signal });
  };
  const media = (query) => {
    const list = matchMedia(query);
    return {
      get matches() { return list.matches; },
      addEventListener: (type, listener) => list.addEventListener(type, listener, { signal }),
    };
  };
  for (const script of scripts) script(scoped, listen, media);
  for (const listener of ready) listener();
  return ending;
}

// Elements by their name and its number of occurrence, which are the same in old and new content.
function called(root, selector, name) {
  const found = new Map(), counts = new Map();
  for (const element of root.querySelectorAll(selector)) {
    const own = name(element), count = (counts.get(own) ?? 0) + 1;
    counts.set(own, count);
    found.set(`${own}\n${count}`, element);
  }
  return found;
}

const heading = (element) => element.closest("figure, .explorer, section")?.querySelector("h2, h3")?.textContent ?? "";
const text = (element) => element.ariaLabel ?? element.closest("label")?.textContent ?? (element.querySelector("summary") ?? element).textContent;
const label = (element) => [heading(element), element.tagName, text(element)].join("\n");
const parts = {
  frames: (root) => called(root, ".frame", label),
  details: (root) => called(root, "details", label),
  headings: (root) => called(root, "thead th", label),
  keys: (root) => called(root, ".keys button, .bar button[aria-pressed], .tools button[aria-pressed]", label),
  inputs: (root) => called(root, ".bar input, .columns input, .brushes input, .tools select, input[data-task]", label),
  places: (root) => called(root, "h2, figure, .table", (element) => `${element.tagName}\n${heading(element)}`),
  focusable: (root) => called(root, "a, button, summary, input, select, [tabindex], textarea", label),
};

function pairs(kind, old, fresh) {
  const before = parts[kind](old);
  return [...parts[kind](fresh)].filter(([name]) => before.has(name)).map(([name, element]) => [before.get(name), element]);
}

function restore(old, fresh) {
  for (const [before, after] of pairs("details", old, fresh)) after.open = before.open;
  for (const [before, after] of pairs("headings", old, fresh)) {
    const wanted = before.getAttribute("aria-sort");
    for (let turn = 0; wanted !== "none" && turn < 2 && after.getAttribute("aria-sort") !== wanted; turn += 1) {
      after.querySelector("button").click();
    }
  }
  for (const [before, after] of pairs("keys", old, fresh)) {
    if (before.getAttribute("aria-pressed") !== after.getAttribute("aria-pressed")
      && !(after.closest(".bar") && before.ariaPressed === "false")) after.click();
  }
  for (const [before, after] of pairs("inputs", old, fresh)) {
    if (before.type === "checkbox" ? before.checked === after.checked : before.value === after.value) continue;
    if (before.type === "checkbox") after.checked = before.checked;
    else after.value = before.value;
    for (const type of ["input", "change"]) after.dispatchEvent(new Event(type, { bubbles: true }));
  }
}

const inView = (element) => {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
};

const pass = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

async function drawn(root) {
  for (const end = performance.now() + MAX_DRAWING; performance.now() < end; await pass(20)) {
    if ([...root.querySelectorAll(".plot")].every((plot) => plot.dataset.drawn || !inView(plot))) return;
  }
}

// Keeps what is at the top of the window in place; does nothing while the head of the page is visible.
function anchor(old, fresh) {
  const top = (element) => element.getBoundingClientRect().top;
  if (top(old) > 0) return () => {};
  const [before, after] = pairs("places", old, fresh).find(([element]) => inView(element)) ?? [old, fresh];
  const place = top(before);
  return () => scrollBy({ top: top(after) - place, behavior: "instant" });
}

function swap(old, fresh, page) {
  const back = anchor(old, fresh);
  const scrolled = pairs("frames", old, fresh).map(([before, after]) => [after, before.scrollLeft, before.scrollTop]);
  const focused = pairs("focusable", old, fresh).find(([element]) => element === document.activeElement)?.[1];
  for (const plot of old.querySelectorAll(".plot")) Plotly.purge(plot);
  old.remove();
  fresh.removeAttribute("style");
  for (const selector of ["body > header", "body > nav", "body > footer"]) {
    const before = document.querySelector(selector), after = page.querySelector(selector);
    if (before && after) before.replaceWith(document.adoptNode(after));
    else if (before) before.remove();
    else if (after) fresh.before(document.adoptNode(after));
  }
  document.title = page.title;
  for (const [element, left, height] of scrolled) element.scrollTo({ left, top: height, behavior: "instant" });
  focused?.focus({ preventScroll: true });
  back();
}

// The new content is drawn invisibly over the old one, which stays until the figures in view are ready.
async function renew(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  const old = document.getElementById("main"), fresh = document.adoptNode(page.getElementById("main"));
  const { offsetLeft, offsetTop, offsetWidth } = old;
  Object.assign(fresh.style, {
    position: "absolute", visibility: "hidden", left: `${offsetLeft}px`, top: `${offsetTop}px`, width: `${offsetWidth}px`,
  });
  old.after(fresh);
  const begun = start(fresh);
  restore(old, fresh);
  await drawn(fresh);
  working.abort();
  working = begun;
  swap(old, fresh, page);
}

// Whether the reader is doing something that new content would interrupt.
const busy = () => down || document.querySelector("dialog[open]") !== null || !getSelection().isCollapsed
  || (performance.now() - moved < HOVER_TIME && document.querySelector(".hoverlayer .hovertext") !== null);

const said = (text, wrong = "") => {
  if (state.textContent !== text) state.textContent = text;
  if (trouble.textContent !== wrong) trouble.textContent = wrong;
};

async function look() {
  const headers = version ? { "If-None-Match": `"${version}"` } : {};
  const answer = await fetch(address, { headers, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) });
  if (answer.status === 304) return said(state.textContent || "Live");
  const text = await answer.text();
  if (!answer.ok) {
    const sentence = new DOMParser().parseFromString(text, "text/html").querySelector("p")?.textContent;
    return said("", sentence ?? `The server returned an error (${answer.status}).`);
  }
  const found = (answer.headers.get("ETag") ?? "").replaceAll('"', "");
  if (found === version || busy() || pause.ariaPressed === "true") return said(state.textContent);
  await renew(text);
  version = found;
  return said(version ? `Live, updated ${new Date().toLocaleTimeString()}` : state.textContent);
}

const watching = () => !document.hidden && pause.ariaPressed !== "true";

// A page that nobody looks at has no stream: browsers allow few connections to a server.
function listen() {
  if (!watching()) {
    stream?.close();
    stream = announced = null;
  } else if (stream === null || (stream.readyState === EventSource.CLOSED && performance.now() - opened > REOPEN_INTERVAL)) {
    opened = performance.now();
    const own = stream = new EventSource(`/events${address.pathname}${address.search}`);
    const hear = (version) => {
      if (own !== stream) return;
      announced = version;
      wake?.();
    };
    own.onmessage = ({ data }) => hear(data);
    own.onerror = () => hear(null); // the browser tries again unless it was refused; meanwhile the page asks
  }
}

async function watch() {
  for (;;) {
    const begun = performance.now();
    let wait = INTERVAL;
    listen();
    if (watching() && (announced !== version || trouble.textContent)) {
      try {
        await look();
      } catch (error) {
        said("", error instanceof TypeError || error.name === "TimeoutError"
          ? "The server does not respond; retrying." : `The page could not be updated: ${error.message}`);
        wait = RETRY_INTERVAL;
      }
    }
    // Slow updates are requested less often; while the page is current, an event ends the wait.
    await new Promise((resolve) => {
      wake = resolve;
      setTimeout(resolve, Math.max(wait, performance.now() - begun));
    });
  }
}

addEventListener("pointerdown", () => { down = true; });
for (const type of ["pointerup", "pointercancel"]) addEventListener(type, () => { down = false; });
addEventListener("pointermove", () => { moved = performance.now(); }, { passive: true });
document.addEventListener("visibilitychange", () => wake?.());
pause.addEventListener("click", () => {
  pause.ariaPressed = pause.ariaPressed === "true" ? "false" : "true";
  said(pause.ariaPressed === "true" ? "Paused" : "Live");
  wake?.();
});
watch();
