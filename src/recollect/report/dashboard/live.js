// Renewing: asks the server every second whether the page has changed, and if so puts the new content in the place of the
// old one, with everything as the reader left it: place, order of tables, opened parts, switched lines, focus.
const EVERY = 1000, AFTER_TROUBLE = 3000; // milliseconds between two questions
const LONGEST = 30000; // milliseconds that an answer may take
const DRAWING = 2000; // milliseconds that figures in view may take before the new content is shown all the same
const POINTING = 3000; // milliseconds after a move of the pointer for which the label of a figure is left alone

const bar = document.getElementById("live");
const state = document.getElementById("live-state");
const trouble = document.getElementById("live-trouble");
const pause = document.getElementById("live-pause");
const address = new URL(location.href);
address.searchParams.delete("token"); // a cookie has it
history.replaceState(history.state, "", address);
address.hash = "";

let version = bar.dataset.version;
let working = start(document.getElementById("main"));
let down = false, moved = -Infinity, wake = null;

// Runs the scripts of the page on the content of an element; what they listen to ends with the controller returned.
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

// Elements by what they are called and the how-manieth of that name they are: the same in old and new content.
function called(root, selector, name) {
  const found = new Map(), counts = new Map();
  for (const element of root.querySelectorAll(selector)) {
    const own = name(element), count = (counts.get(own) ?? 0) + 1;
    counts.set(own, count);
    found.set(`${own}\n${count}`, element);
  }
  return found;
}

const heading = (element) => element.closest("figure, section")?.querySelector("h2, h3")?.textContent ?? "";
const text = (element) => element.ariaLabel ?? (element.querySelector("summary") ?? element).textContent;
const label = (element) => [heading(element), element.tagName, text(element)].join("\n");
const parts = {
  frames: (root) => called(root, ".frame", label),
  details: (root) => called(root, "details", label),
  headings: (root) => called(root, "thead th", label),
  keys: (root) => called(root, ".keys button", label),
  places: (root) => called(root, "h2, figure, .table", (element) => `${element.tagName}\n${heading(element)}`),
  focusable: (root) => called(root, "a, button, summary, [tabindex], textarea", label),
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
    if (before.getAttribute("aria-pressed") !== after.getAttribute("aria-pressed")) after.click();
  }
}

const inView = (element) => {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
};

const pass = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

async function drawn(root) {
  for (const end = performance.now() + DRAWING; performance.now() < end; await pass(20)) {
    if ([...root.querySelectorAll(".plot")].every((plot) => plot.dataset.drawn || !inView(plot))) return;
  }
}

// What is at the top of the window, to be there again afterwards; nothing while the head of the page is seen.
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

// The new content is drawn unseen over the old one, which stays until the figures in view are ready.
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

// Whether the reader is in the middle of something that new content would end.
const busy = () => down || !getSelection().isCollapsed
  || (performance.now() - moved < POINTING && document.querySelector(".hoverlayer .hovertext") !== null);

const said = (text, wrong = "") => {
  if (state.textContent !== text) state.textContent = text;
  if (trouble.textContent !== wrong) trouble.textContent = wrong;
};

async function look() {
  const headers = version ? { "If-None-Match": `"${version}"` } : {};
  const answer = await fetch(address, { headers, cache: "no-store", signal: AbortSignal.timeout(LONGEST) });
  if (answer.status === 304) return said(state.textContent);
  const text = await answer.text();
  if (!answer.ok) {
    const sentence = new DOMParser().parseFromString(text, "text/html").querySelector("p")?.textContent;
    return said("", sentence ?? `The server answers with an error (${answer.status}).`);
  }
  const found = (answer.headers.get("ETag") ?? "").replaceAll('"', "");
  if (found === version || busy() || pause.ariaPressed === "true") return said(state.textContent);
  await renew(text);
  version = found;
  return said(version ? `Live, updated ${new Date().toLocaleTimeString()}` : state.textContent);
}

async function watch() {
  for (;;) {
    const begun = performance.now();
    let wait = EVERY;
    if (!document.hidden && pause.ariaPressed !== "true") {
      try {
        await look();
      } catch (error) {
        said("", error instanceof TypeError || error.name === "TimeoutError"
          ? "The server does not answer; it is asked again." : `The page could not be renewed: ${error.message}`);
        wait = AFTER_TROUBLE;
      }
    }
    // What takes long is done less often.
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
