"use strict";
// All trials of a run: a table with search, filters and columns to choose, and a panel for each trial.
// Figures tell the table which trials are selected ("trials-selected") and which one to open ("trial-opened").
(() => {
  const SIZE = 25;
  const HASH = /^#trial-(\d+)$/;
  const { element, download, csv, tableView, controls, copied } = window.recollect;
  function shortNumber(value, digits = 5) {
    if (value === null) return "\u2013";
    const short = Number(value.toPrecision(digits));
    return short !== 0 && Math.abs(short) < 1e-3 ? short.toExponential() : String(short);
  }
  const percent = (share) => `${Math.round(100 * share)}%`;

  // Values come as JSON texts, so that no digit and no type is lost.
  function paramText(text) {
    if (text === null) return "\u2013";
    const value = JSON.parse(text);
    if (typeof value === "number" && !Number.isInteger(value)) return shortNumber(value);
    return typeof value === "string" ? value : python(text);
  }

  const configs = {
    JSON: (names, values) => `{${names.map((name, place) => `${JSON.stringify(name)}: ${values[place]}`).join(", ")}}`,
    "Command line": (names, values) => names.map((name, place) => quoted(`--${name}=${plain(values[place])}`)).join(" "),
    Python: (names, values) => `{${names.map((name, place) => `${JSON.stringify(name)}: ${python(values[place])}`).join(", ")}}`,
  };
  const plain = (text) => (text.startsWith('"') ? JSON.parse(text) : text);
  const python = (text) => ({ true: "True", false: "False", null: "None" })[text] ?? text;
  const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

  function seconds(value) {
    if (value === null) return "\u2013";
    if (value < 60) return `${Number(value.toPrecision(3))} s`;
    const minutes = Math.floor(value / 60);
    return minutes < 60 ? `${minutes} min ${Math.round(value % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }

  const pill = (state) => element("span", { class: `pill state-${state}` }, element("span", { class: "dot" }), state);

  function list(pairs) {
    const parts = pairs.filter(([, value]) => value !== null && value !== "\u2013");
    return element("dl", { class: "settings" }, ...parts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  }

  const group = (title, ...children) => element("div", {}, element("h4", {}, title), ...children);

  function start(explorer) {
    const data = JSON.parse(explorer.querySelector("script.trials").textContent);
    const table = explorer.querySelector("table"), headings = [...table.tHead.rows[0].cells];
    const columns = headings.map((heading) => heading.textContent), hidden = new Set();
    const fixed = columns.length - data.params.length;
    const trials = data.trials.map(([number, state, value, rank, duration, started, worker, reason, params]) => ({
      number, state: data.states[state], value, rank, duration, started, worker: data.workers[worker] ?? null,
      reason: data.reasons[reason] ?? null, params,
    }));
    const byNumber = new Map(trials.map((trial, place) => [trial.number, place]));
    const shown = (trial) => [
      trial.number, trial.state, trial.value, trial.rank, trial.duration, trial.started, trial.worker, trial.reason,
    ];

    function cells(trial) {
      const [, state, value, rank, duration, started, worker, reason] = shown(trial);
      const open = element("a", { href: `#trial-${trial.number}` }, String(trial.number));
      const texts = [
        open, pill(state), shortNumber(value), rank === null ? "\u2013" : String(rank), seconds(duration), started ?? "\u2013",
        worker ?? "\u2013", reason ?? "\u2013", ...trial.params.map(paramText),
      ];
      return texts.map((text, place) => {
        const name = place ? "td" : "th", kind = headings[place].className.trim();
        return element(name, { class: kind || null, scope: place ? null : "row", hidden: hidden.has(place) }, text);
      });
    }

    const rows = trials.map((trial) => ({
      trial, element: () => element("tr", {}, ...cells(trial)),
      order: (place) => (place < fixed ? shown(trial)[place] : trial.params[place - fixed] === null ? null : plain(trial.params[place - fixed])),
      get text() {
        return (this.found ??= [`trial ${trial.number}`, ...shown(trial).slice(1), ...trial.params.map(paramText)].join(" ").toLowerCase());
      },
    }));
    let view = null, chosen = "all", selected = null;
    const parts = controls(() => view, { label: "trials", unit: "trials", total: rows.length });
    view = tableView({ headings, bodies: [{ body: table.tBodies[0], rows }], columns, size: SIZE, onShow: parts.shown });

    function filter() {
      view.extra = chosen === "all" && !selected ? null
        : ({ trial }) => (chosen === "all" || trial.state === chosen) && (!selected || selected.has(trial.number));
      view.page = 0;
      view.show();
    }

    const counts = new Map(data.states.map((state) => [state, trials.filter((trial) => trial.state === state).length]));
    const chips = ["all", ...data.states.filter((state) => counts.get(state))].map((state) => element("button", {
      type: "button", class: "button", "aria-pressed": String(state === chosen), "aria-label": `Show ${state} trials`, onclick: ({ currentTarget }) => {
        chosen = state;
        for (const chip of chips) chip.setAttribute("aria-pressed", String(chip === currentTarget));
        filter();
      },
    }, state === "all" ? "All" : `${state} (${counts.get(state)})`));

    // When and where trials ran, and why, is unknown in studies of other programs: empty columns are hidden at first.
    headings.forEach((heading, place) => {
      if (heading.matches(".moment, .words") && rows.every((row) => row.order(place) === null)) hidden.add(place);
      heading.hidden = hidden.has(place);
    });
    const boxes = columns.slice(1).map((name, place) => element("label", {}, element("input", {
      type: "checkbox", checked: !hidden.has(place + 1), onchange: ({ currentTarget }) => {
        hidden[currentTarget.checked ? "delete" : "add"](place + 1);
        headings[place + 1].hidden = !currentTarget.checked;
        view.show();
      },
    }), name));
    const save = element("button", { type: "button", class: "button", onclick: () => {
      const lines = view.matching().flat().map(({ trial }) => [...shown(trial), ...trial.params.map((text) => (text === null ? null : plain(text)))]);
      download(`${data.task} trials.csv`, "text/csv", [csv([columns, ...lines])]);
    } }, "Download CSV");
    const clear = element("button", { type: "button", class: "button", hidden: true, onclick: () => {
      explorer.dispatchEvent(new CustomEvent("trials-cleared"));
    } }, "Clear the selection of the figure");
    explorer.addEventListener("trials-selected", ({ detail }) => {
      selected = detail;
      clear.hidden = detail === null;
      filter();
    });
    const chooser = element("details", { class: "columns" }, element("summary", {}, "Columns"), element("div", {}, ...boxes));
    table.parentElement.before(element("div", { class: "bar" }, parts.search, ...chips, chooser, save, clear, parts.output, parts.pager));
    view.show();

    // The panel of one trial.
    const dialog = element("dialog", { "aria-label": "Trial" });
    explorer.append(dialog);
    dialog.addEventListener("close", () => { if (HASH.test(location.hash)) history.replaceState(null, "", location.pathname + location.search); });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

    function weights(detail) {
      const body = detail.weights.map(([source, weight, share, rank]) => element("tr", {},
        element("th", { scope: "row" }, named(source)),
        element("td", { class: "number" }, element("meter", { min: 0, max: 1, value: weight, "aria-label": percent(weight) }), ` ${percent(weight)}`),
        element("td", { class: "number" }, share === null ? "\u2013" : detail.prior ? share.toFixed(2) : percent(share)),
        element("td", { class: "number" }, rank === null ? "\u2013" : `${rank} of ${data.ranked}`)));
      const head = ["past run", "weight", detail.prior ? "coefficient" : "share of the score", "rank it predicted"].map((name, place) =>
        element("th", { scope: "col", class: place ? "number" : null }, name));
      return element("div", { class: "frame", tabindex: "0", role: "region", "aria-label": "Past runs behind this trial" },
        element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body)));
    }

    function named(source) {
      const url = data.links[source];
      return url ? element("a", { href: url }, data.sources[source]) : data.sources[source];
    }

    function why(trial, detail) {
      const sentences = [trial.reason ? `${trial.reason[0].toUpperCase()}${trial.reason.slice(1)}.` : "Nothing was recorded."];
      if (detail.expected) {
        const [mean, std] = detail.expected;
        sentences.push(`The model expected ${shortNumber(mean, 4)} \u00b1 ${shortNumber(std, 2)}${trial.value === null ? "" : `; the value was ${shortNumber(trial.value)}`}.`);
      }
      if (detail.prior) {
        const [alike, reversed] = detail.prior;
        const turned = reversed >= 0.005 ? `, of which ${percent(reversed)} reversed` : "";
        sentences.push(`Past runs had ${percent(alike + reversed)} of the weight${turned}.`);
      } else if (detail.target !== undefined) {
        const dropped = detail.dropped ? `; ${detail.dropped} were dropped from this suggestion` : "";
        sentences.push(`This task's own model had ${percent(detail.target)} of the weight, past runs ${percent(1 - detail.target)}${dropped}.`);
      }
      return group("Why it was suggested", element("p", {}, sentences.join(" ")), ...(detail.weights?.length ? [weights(detail)] : []));
    }

    function spark(reports) {
      const steps = reports.map(([step]) => step), values = reports.map(([, value]) => value);
      const low = Math.min(...values), span = Math.max(...values) - low || 1;
      const first = Math.min(...steps), length = Math.max(...steps) - first || 1;
      const drawing = document.createElementNS("http\u003a\u002f\u002fwww.w3.org/2000/svg", "svg");
      const line = document.createElementNS("http\u003a\u002f\u002fwww.w3.org/2000/svg", "polyline");
      drawing.setAttribute("viewBox", "0 0 100 40");
      drawing.setAttribute("preserveAspectRatio", "none");
      drawing.setAttribute("class", "spark");
      line.setAttribute("points", reports.map(([step, value]) => `${(100 * (step - first)) / length},${38 - (36 * (value - low)) / span}`).join(" "));
      drawing.append(line);
      const last = reports.at(-1);
      return group("Intermediate values", drawing, element("p", {}, `${reports.length} reports; the last one, at step ${last[0]}, was ${shortNumber(last[1])}.`));
    }

    function open(number) {
      const place = byNumber.get(number);
      if (place === undefined) return;
      const trial = trials[place], detail = data.details[number] ?? {};
      const used = data.params.map((name, column) => [name, trial.params[column]]).filter(([, text]) => text !== null);
      const names = used.map(([name]) => name), values = used.map(([, text]) => text);
      const copies = Object.entries(configs).map(([label, text]) => {
        const button = element("button", { type: "button", class: "button", onclick: async () => {
          button.textContent = (await copied(text(names, values), button)) ? "Copied" : "Press Ctrl-C";
          setTimeout(() => { button.textContent = label; }, 1500);
        } }, label);
        return button;
      });
      const turn = (step, text, label) => element("button", {
        type: "button", class: "button", "aria-label": label, disabled: !trials[place + step],
        onclick: () => { location.hash = `#trial-${trials[place + step].number}`; },
      }, text);
      const close = element("button", { type: "button", class: "button", onclick: () => dialog.close() }, "Close");
      const rank = trial.rank === null ? "" : `rank ${trial.rank} of ${data.ranked}`;
      const value = trial.value === null ? "no value" : shortNumber(trial.value);
      const facts = list([
        ["duration", seconds(trial.duration)], ["started", trial.started], ["ended", detail.ended ?? null], ["worker", trial.worker],
        ["log", detail.log ?? null],
      ]);
      dialog.replaceChildren(element("div", {},
        element("div", { class: "top" }, element("h3", {}, `Trial ${number}`), pill(trial.state),
          element("span", { class: "turn" }, turn(-1, "\u2039", "Previous trial"), turn(1, "\u203a", "Next trial"), close)),
        element("div", { class: "two" },
          group(trial.state === "pruned" ? "Last reported value" : "Value", element("p", { class: "value" }, value), element("p", {}, rank), facts),
          group("Configuration", list(used.map(([name, text]) => [name, paramText(text)])), element("div", { class: "copies" }, "Copy as", ...copies))),
        ...(detail.notes?.length ? [group("Notes", ...detail.notes.map((note) => element("p", {}, note)))] : []),
        why(trial, detail), ...(detail.reports?.length > 1 ? [spark(detail.reports)] : [])));
      if (!dialog.open) dialog.showModal();
      close.focus();
    }

    const follow = () => {
      const found = HASH.exec(location.hash);
      if (found) open(Number(found[1]));
    };
    addEventListener("hashchange", follow);
    explorer.addEventListener("trial-opened", ({ detail }) => { location.hash = `#trial-${detail}`; });
    addEventListener("DOMContentLoaded", follow);
  }

  for (const explorer of document.querySelectorAll(".explorer")) start(explorer);
})();
