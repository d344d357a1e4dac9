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
    if (key === "z" || ArrayBuffer.isView(value)) return value; // many numbers, no colours
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
      title: { standoff: 8, font: { color: "@soft", size: 12 } }, automargin: true,
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

  // A matrix of a heat map comes as bytes: each is a hundredth, -128 is no number. It is unpacked when it is drawn.
  function unpacked(trace) {
    if (typeof trace.z !== "string") return trace;
    const bytes = atob(trace.z), size = trace.x.length;
    const rows = trace.y.map(() => new Float64Array(size));
    for (let place = 0; place < bytes.length; place += 1) {
      const byte = bytes.charCodeAt(place);
      rows[Math.floor(place / size)][place % size] = byte === 128 ? NaN : (byte < 128 ? byte : byte - 256) / 100;
    }
    return { ...trace, z: rows };
  }

  const figures = [...document.querySelectorAll("figure")].map((element) => {
    const spec = JSON.parse(element.querySelector(".spec").textContent);
    return {
      element, spec, plot: element.querySelector(".plot"), keys: [...element.querySelectorAll(".keys button")], drawn: false, log: null,
    };
  });

  const heightOf = ({ plot, spec }) => (spec.square ? plot.clientWidth : spec.height);

  // An axis that the reader has switched between a linear and a logarithmic scale chooses its own range and ticks.
  function scaled({ spec, log }) {
    if (log === null) return spec.layout;
    const layout = { ...spec.layout };
    for (const name of Object.keys(layout).filter((key) => key.startsWith(spec.log))) {
      const { range, dtick, tickvals, ticktext, ...axis } = layout[name];
      layout[name] = { ...axis, type: log ? "log" : "linear", autorange: true };
    }
    return layout;
  }

  function draw(figure) {
    const { plot, spec } = figure;
    const layout = { ...scaled(figure), template: template(), height: heightOf(figure), autosize: true };
    const config = { displayModeBar: false, showTips: false, doubleClick: "reset" };
    plot.querySelector(".hold")?.remove();
    plot.style.height = `${heightOf(figure)}px`;
    figure.width = plot.clientWidth;
    const first = !figure.drawn;
    if (first) spec.traces = spec.traces.map(unpacked);
    figure.drawn = true;
    return Plotly.react(plot, coloured(spec.traces), coloured(layout), config).then(() => {
      plot.dataset.drawn = dark.matches ? "dark" : "light";
      if (first) listen(figure);
    });
  }

  const explorer = () => document.querySelectorAll(".explorer")[0];

  function listen({ plot, spec }) {
    if (!spec.trials || !explorer()) return;
    plot.on("plotly_click", ({ points }) => {
      const data = points[0].customdata, number = Array.isArray(data) ? data[0] : undefined;
      if (typeof number === "number") explorer().dispatchEvent(new CustomEvent("trial-opened", { detail: number }));
    });
  }

  // PNG is made from SVG by a canvas: plotly's own way would need a more permissive policy.
  async function image({ plot, element }, format) {
    const { width, height } = plot.getBoundingClientRect(), name = element.querySelector("h3").textContent.replace(/[^\w -]/g, "");
    const card = getComputedStyle(document.documentElement).getPropertyValue("--card").trim();
    const url = await Plotly.toImage(plot, { format: "svg", width, height, setBackground: card });
    const drawing = decodeURIComponent(url.slice(url.indexOf(",") + 1));
    if (format === "svg") return window.recollect.download(`${name}.svg`, "image/svg+xml", [drawing]);
    const picture = new Image(), canvas = document.createElement("canvas");
    picture.src = `data:image/svg+xml;base64,${btoa(Array.from(new TextEncoder().encode(drawing), (byte) => String.fromCharCode(byte)).join(""))}`;
    await picture.decode();
    [canvas.width, canvas.height] = [2 * width, 2 * height];
    const context = canvas.getContext("2d");
    context.fillStyle = card;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    return canvas.toBlob((blob) => window.recollect.download(`${name}.png`, "image/png", [blob]));
  }

  for (const figure of figures) {
    const { element, spec, plot } = figure;
    for (const button of element.querySelectorAll("[data-image]")) {
      button.addEventListener("click", async () => {
        if (!figure.drawn) await draw(figure);
        await image(figure, button.dataset.image);
      });
    }
    element.querySelector("[data-log]")?.addEventListener("click", ({ currentTarget }) => {
      figure.log = currentTarget.getAttribute("aria-pressed") !== "true";
      currentTarget.setAttribute("aria-pressed", String(figure.log));
      draw(figure);
    });
    element.querySelector("select")?.addEventListener("change", ({ currentTarget }) => {
      Object.assign(spec, spec.views[currentTarget.value]);
      if (figure.drawn) draw(figure);
    });
    if (spec.brush) brushing(figure);
  }

  // Parallel coordinates: dragging along a row, or its two sliders, selects the trials in that range; the rest is pale.
  function brushing(figure) {
    const { plot, spec, element } = figure, { numbers, positions, lines, names, texts, limits } = spec.brush;
    const place = new Map(numbers.map((number, at) => [number, at])), hover = new Map(), ranges = new Map();
    spec.traces.forEach(({ customdata }) => customdata.forEach(([number], at) => {
      if (!hover.has(number)) hover.set(number, customdata.slice(at, at + names.length + 1));
    }));
    const inside = (at) => [...ranges].every(([axis, [low, high]]) => {
      const own = positions[axis][at];
      return own !== null && own >= low && own <= high;
    });
    const label = (axis, at) => texts[axis][Math.round(Math.min(Math.max(at, 0), 1) * (texts[axis].length - 1))];

    function trace(own) {
      const x = [], y = [], customdata = [];
      for (const number of own) {
        names.forEach((_, axis) => { x.push(positions[axis][place.get(number)] ?? limits[0]); y.push(axis); });
        x.push(null);
        y.push(null);
        customdata.push(...hover.get(number));
      }
      return { x, y, customdata };
    }

    const shapes = (shown) => [...shown].map(([axis, [low, high]]) => ({
      type: "rect", x0: low, x1: high, y0: axis - 0.16, y1: axis + 0.16, line: { color: "@blue", width: 1.5 }, fillcolor: "@blue:0.2",
    }));

    function update() {
      const selected = ranges.size ? new Set(numbers.filter((_, at) => inside(at))) : null;
      const kept = lines.map((own) => own.filter((number) => !selected || selected.has(number)));
      const pale = selected ? lines.flat().filter((number) => !selected.has(number)) : [];
      [pale, ...kept].forEach((own, at) => Object.assign(spec.traces[at], trace(own)));
      spec.layout.shapes = shapes(ranges);
      if (figure.drawn) draw(figure);
      explorer()?.dispatchEvent(new CustomEvent("trials-selected", { detail: selected }));
      output.textContent = selected ? `${selected.size} of ${numbers.length} trials selected` : "";
      rows.forEach(({ inputs, said }, axis) => {
        const range = ranges.get(axis) ?? [0, 1];
        inputs.forEach((input, end) => { input.value = String(range[end]); });
        said.textContent = ranges.has(axis) ? `${label(axis, range[0])} to ${label(axis, range[1])}` : "all";
      });
    }

    const { element: make } = window.recollect, output = element.querySelector(".brush-state");
    const rows = names.map((name, axis) => {
      const inputs = ["lowest", "highest"].map((end, at) => make("input", {
        type: "range", min: 0, max: 1, step: 0.05, value: at, "aria-label": `${name}: ${end}`,
        onchange: () => {
          const ends = rows[axis].inputs.map((input) => Number(input.value)).sort((one, other) => one - other);
          if (ends[0] <= 0 && ends[1] >= 1) ranges.delete(axis);
          else ranges.set(axis, ends);
          update();
        },
      }));
      return { name, inputs, said: make("output", {}, "all") };
    });
    element.querySelector(".brushes").append(...rows.flatMap(({ name, inputs, said }) => [make("label", {}, name), ...inputs, said]));
    element.querySelector("[data-clear]").addEventListener("click", () => { ranges.clear(); update(); });
    explorer()?.addEventListener("trials-cleared", () => { ranges.clear(); update(); });

    let from = null;
    const at = ({ clientX, clientY }) => {
      const { xaxis, yaxis } = plot._fullLayout, frame = plot.getBoundingClientRect();
      return [xaxis.p2c(clientX - frame.left - xaxis._offset), yaxis.p2c(clientY - frame.top - yaxis._offset)];
    };
    plot.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" || event.button !== 0 || !figure.drawn) return;
      const [x, y] = at(event), axis = Math.round(y);
      if (axis >= 0 && axis < names.length && Math.abs(y - axis) < 0.3) from = { axis, x, left: event.clientX };
    }, { capture: true });
    const dragged = (event) => {
      const [end] = at(event);
      return [Math.min(from.x, end), Math.max(from.x, end)];
    };
    addEventListener("pointermove", (event) => {
      if (from) Plotly.relayout(plot, coloured({ shapes: shapes(new Map(ranges).set(from.axis, dragged(event))) }));
    });
    addEventListener("pointerup", (event) => {
      if (!from) return;
      const { axis, left } = from, range = dragged(event);
      from = null;
      if (Math.abs(event.clientX - left) >= 4) ranges.set(axis, range);
      else if (!ranges.delete(axis)) return;
      update();
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
    if (keys.length) show(figure);
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
