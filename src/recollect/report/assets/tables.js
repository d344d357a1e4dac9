"use strict";
// Tables that readers can sort, search, page through and download. A long table keeps only the rows of one page in the
// document. window.recollect.tableView is used for trials as well (trials.js), whose rows are made when they are shown.
(() => {
  const LONG = 25; // rows of a page; a table with more has a search field
  const collator = new Intl.Collator("en", { numeric: true });
  const turns = { none: "ascending", ascending: "descending", descending: "none" };
  const number = new Intl.NumberFormat("en");

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...children);
    return made;
  }

  function download(name, type, parts) {
    const link = element("a", { href: URL.createObjectURL(new Blob(parts, { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // Fields that a spreadsheet would take for a formula are quoted with an apostrophe.
  function field(value) {
    const text = value === null || value === undefined ? "" : String(value);
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  const csv = (rows) => rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";

  // "lr<0.01", "state=failed", "wine": what a row must meet; a term with an operator compares one column.
  function condition(term, columns) {
    const found = /^(.+?)(<=|>=|=|<|>)(.+)$/.exec(term);
    const place = found ? columns.findIndex((name) => name.toLowerCase() === found[1].toLowerCase()) : -1;
    if (place < 0) return (row) => row.text.includes(term.toLowerCase());
    const [, , operator, wanted] = found;
    const tests = {
      "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b, "=": (a, b) => a === b,
    };
    return (row) => {
      const own = row.order(place);
      if (own === undefined || own === null) return false;
      const numeric = wanted !== "" && !Number.isNaN(Number(wanted)) && !Number.isNaN(Number(own));
      return numeric ? tests[operator](Number(own), Number(wanted))
        : tests[operator](collator.compare(String(own), wanted), 0);
    };
  }

  // rows: { order(column), text, element() }; the view keeps what the reader has set and shows one page.
  function tableView({ headings, bodies, columns, size = LONG, onShow = () => {} }) {
    const view = { sort: null, terms: [], extra: null, page: 0, columns };
    const numeric = headings.map((heading) => heading.classList.contains("number"));

    function sorted(rows) {
      if (!view.sort) return rows;
      const { column, turn } = view.sort, sign = turn === "ascending" ? 1 : -1;
      return [...rows].sort((one, other) => {
        const first = one.order(column), second = other.order(column);
        const none = (value) => value === undefined || value === null;
        if (none(first) || none(second)) return none(first) - none(second);
        return sign * (numeric[column] ? Number(first) - Number(second) : collator.compare(first, second));
      });
    }

    view.matching = () => bodies.map(({ rows }) =>
      sorted(rows.filter((row) => (!view.extra || view.extra(row)) && view.terms.every((meets) => meets(row)))));

    view.show = () => {
      const matching = view.matching(), count = matching.reduce((sum, rows) => sum + rows.length, 0);
      const pages = Math.max(1, Math.ceil(count / size));
      view.page = Math.min(view.page, pages - 1);
      let skip = view.page ? view.page * size : 0, left = size;
      bodies.forEach(({ body }, place) => {
        const shown = matching[place].slice(skip, skip + left);
        skip = Math.max(0, skip - matching[place].length);
        left -= shown.length;
        body.replaceChildren(...shown.map((row) => row.element()));
      });
      onShow({ count, pages, page: view.page });
    };

    view.search = (text) => {
      view.terms = text.trim().split(/\s+/).filter(Boolean).map((term) => condition(term, view.columns));
      view.page = 0;
      view.show();
    };

    headings.forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => {
        const turn = turns[heading.getAttribute("aria-sort")];
        for (const other of headings) other.setAttribute("aria-sort", "none");
        heading.setAttribute("aria-sort", turn);
        view.sort = turn === "none" ? null : { column, turn };
        view.page = 0;
        view.show();
      });
    });
    return view;
  }

  // The search field and the pager of a long table; returns the element and what tells it what is shown.
  function controls(view, { label, unit, total }) {
    const search = element("input", {
      type: "search", "aria-label": `Search ${label}`, placeholder: "Search, or column<value", autocomplete: "off",
    });
    const output = element("output", { "aria-live": "polite" });
    const turn = (step, text, name) => element("button", {
      type: "button", class: "button", "aria-label": name, onclick: () => { view().page += step; view().show(); },
    }, text);
    const back = turn(-1, "\u2039", "Previous page"), next = turn(1, "\u203a", "Next page"), place = element("span");
    search.addEventListener("input", () => view().search(search.value));
    const shown = ({ count, pages, page }) => {
      output.textContent = count === total ? `${number.format(total)} ${unit}` : `${number.format(count)} of ${number.format(total)} ${unit}`;
      place.textContent = `${page + 1} / ${pages}`;
      back.disabled = page === 0;
      next.disabled = page >= pages - 1;
    };
    return { search, output, pager: element("span", { class: "pager" }, back, place, next), shown };
  }

  window.recollect = { element, download, csv, tableView, controls };

  for (const table of document.querySelectorAll("table.sortable")) {
    const headings = [...table.tHead.rows[0].cells], names = headings.map((heading) => heading.textContent);
    const bodies = [...table.tBodies].map((body) => ({
      body,
      rows: [...body.rows].map((row) => ({
        row, element: () => row, order: (column) => row.cells[column].dataset.order,
        get text() { return (this.found ??= row.textContent.toLowerCase()); },
      })),
    }));
    const total = bodies.reduce((sum, { rows }) => sum + rows.length, 0);
    if (total <= LONG) {
      tableView({ headings, bodies, columns: names, size: Infinity });
      continue;
    }
    const title = table.getAttribute("aria-label");
    let view = null;
    const parts = controls(() => view, { label: title, unit: "rows", total });
    view = tableView({ headings, bodies, columns: names, onShow: parts.shown });
    const save = element("button", {
      type: "button", class: "button", onclick: () => {
        const rows = view.matching().flat().map(({ row }) => [...row.cells].map((cell) => cell.textContent));
        download(`${title}.csv`, "text/csv", [csv([names, ...rows])]);
      },
    }, "CSV");
    table.parentElement.before(element("div", { class: "bar" }, parts.search, parts.output, save, parts.pager));
    view.show();
  }

  // Rows with a checkbox: the pages of the chosen tasks are compared.
  for (const button of document.querySelectorAll("button.compare")) {
    const table = button.closest(".table"), chosen = new Set();
    table.addEventListener("change", ({ target }) => {
      if (!target.matches("input[data-task]")) return;
      chosen[target.checked ? "add" : "delete"](target.dataset.task);
      button.disabled = chosen.size < 2;
      button.textContent = chosen.size ? `Compare ${chosen.size} tasks` : "Compare chosen tasks";
    });
    button.addEventListener("click", () => {
      const query = [...chosen].map((task) => `task=${encodeURIComponent(task)}`).join("&");
      location.assign(`${button.dataset.url}&${query}`);
    });
  }

  for (const button of document.querySelectorAll("button[data-copy]")) {
    const label = button.textContent;
    button.addEventListener("click", async () => {
      const done = await copied(button.dataset.copy, button);
      button.textContent = done ? "Copied" : "Press Ctrl-C";
      setTimeout(() => { button.textContent = label; }, 1500);
    });
  }

  // Without a secure connection there is no clipboard for scripts: the text is then selected in a field.
  async function copied(text, near) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = element("textarea", { class: "unseen", "aria-hidden": "true", tabindex: "-1" });
      area.value = text;
      near.after(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      near.focus();
      return done;
    }
  }
  window.recollect.copied = copied;
})();
