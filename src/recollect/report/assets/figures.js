"use strict";
// Draws the figures in view first and the others when the browser is idle; redraws them when the color scheme or the
// width changes.
(() => {
  const FADED = 0.15;
  const PAUSE = 100; // milliseconds without a change of width before figures are redrawn
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 37.5rem)");
  const touch = matchMedia("(pointer: coarse)");

  // "@blue:0.2" in the data is the colour --blue of the style sheet, with that opacity.
  function colour(text) {
    const [name, opacity] = text.slice(1).split(":");
    const value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    if (opacity === undefined) return value;
    const parts = [1, 3, 5].map((start) => parseInt(value.slice(start, start + 2), 16));
    return `rgba(${parts.join(",")},${opacity})`;
  }

  function coloured(value, key = "") {
    if (Array.isArray(value)) return value.map((inner) => coloured(inner, key));
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, coloured(inner, name)]));
    }
    const wanted = /color(scale)?$/.test(key) && typeof value === "string" && value.startsWith("@");
    return wanted ? colour(value) : value;
  }

  function template() {
    const axis = {
      gridcolor: "@grid", linecolor: "@rule", zerolinecolor: "@rule", tickcolor: "@rule", ticks: "outside", ticklen: 4,
      title: { standoff: 8 }, automargin: true,
    };
    return {
      layout: {
        font: { color: "@ink", size: narrow.matches ? 11 : 13, family: getComputedStyle(document.body).fontFamily },
        paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
        hoverlabel: { bgcolor: "@card", bordercolor: "@soft", font: { color: "@ink" }, align: "left" },
        margin: { l: 48, r: 12, t: 12, b: 44 },
        hovermode: "closest", showlegend: false, dragmode: touch.matches ? false : "zoom",
        xaxis: axis, yaxis: axis,
      },
    };
  }

  const figures = [...document.querySelectorAll("figure")].map((element) => ({
    plot: element.querySelector(".plot"),
    keys: [...element.querySelectorAll(".keys button")],
    spec: JSON.parse(element.querySelector(".spec").textContent),
    drawn: false,
  }));
  for (const { plot, spec } of figures) plot.style.height = `${spec.height}px`;

  function draw(figure) {
    const { plot, spec } = figure;
    const layout = { ...spec.layout, template: template(), height: spec.height, autosize: true };
    const config = { displayModeBar: false, showTips: false, doubleClick: "reset" };
    figure.drawn = true;
    figure.width = plot.clientWidth;
    return Plotly.react(plot, coloured(spec.traces), coloured(layout), config).then(() => {
      plot.dataset.drawn = dark.matches ? "dark" : "light";
    });
  }

  const tracesOf = (button) => button.dataset.traces.split(" ").map(Number);

  const names = (button) => !button.classList.contains("switch");

  function show({ keys, spec }) {
    const off = new Set(keys.filter((key) => key.getAttribute("aria-pressed") === "false").flatMap(tracesOf));
    for (const trace of keys.flatMap(tracesOf)) spec.traces[trace].visible = !off.has(trace);
  }

  // A key switches its lines on and off; pointing at it fades all other lines.
  for (const figure of figures) {
    const { plot, keys, spec } = figure;
    show(figure);
    const fade = (button) => {
      if (!figure.drawn) return;
      const own = new Set(button ? tracesOf(button) : []);
      const others = keys.filter(names).flatMap(tracesOf);
      Plotly.restyle(plot, { opacity: others.map((trace) => (!button || own.has(trace) ? 1 : FADED)) }, others);
    };
    for (const button of keys) {
      button.addEventListener("click", () => {
        const shown = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(shown));
        show(figure);
        const changed = tracesOf(button);
        if (figure.drawn) Plotly.restyle(plot, { visible: changed.map((trace) => spec.traces[trace].visible) }, changed);
      });
      if (!names(button)) continue;
      button.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") fade(button); });
      button.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") fade(null); });
      button.addEventListener("focus", () => { if (button.matches(":focus-visible")) fade(button); });
      button.addEventListener("blur", () => fade(null));
    }
  }

  const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 30));
  function drawNext() {
    const next = figures.find((figure) => !figure.drawn);
    if (next) draw(next).then(() => later(drawNext));
  }

  function start() {
    const watcher = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        watcher.unobserve(target);
        const figure = figures.find(({ plot }) => plot === target);
        if (!figure.drawn) draw(figure);
      }
    }, { rootMargin: "200px" });
    for (const { plot } of figures) watcher.observe(plot);
    later(drawNext);
    const again = (changed) => figures.filter((figure) => figure.drawn && changed(figure)).forEach(draw);
    dark.addEventListener("change", () => again(() => true));
    let pause;
    const sizes = new ResizeObserver(() => {
      clearTimeout(pause);
      pause = setTimeout(() => again(({ plot, width }) => plot.clientWidth !== width), PAUSE);
    });
    for (const { plot } of figures) sizes.observe(plot);
    addEventListener("beforeprint", () => figures.filter(({ drawn }) => !drawn).forEach(draw));
  }

  // This script comes before plotly's, which is large: the text can be read while that loads.
  addEventListener("DOMContentLoaded", () => { if (figures.length) start(); });
})();
