// The page: the list of cases, the chosen case, the controls. Works on the data in the page and
// paints with painting.js, which stands before it in the same module.

const FEW_CHANNELS = 6;
const FEWEST_COLUMNS = 8;

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const state = {
  index: -1, // position in `data.cases`
  listed: [], // positions of the cases that pass the filters, in order
  shown: null, // the chosen case, unpacked
  target: 0, // class whose evidence is shown
  mode: "both",
  shared: false, // one scale of values for all channels
  from: 0, // visible columns
  to: 1,
  cursor: null, // column under the cursor
  opened: new Set(), // rows of the channels opened beyond the most important ones
  all: false, // all channels are open
};
let plots = [];

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

const label = (index) => data.labels[index] ?? "";
const percent = (p) => `${p >= 0.9995 || p < 0.0005 ? Math.round(p * 100) : (p * 100).toFixed(1)} %`;

// --- the list ----------------------------------------------------------------------------------

function certainty(packed) {
  return packed.probabilities?.find(([k]) => k === packed.predicted)?.[1] ?? null;
}

function verdict(packed) {
  if (packed.true < 0) return "";
  return packed.true === packed.predicted ? "correct" : "wrong";
}

const options = data.cases.map((packed, index) => {
  const p = certainty(packed);
  const mark = verdict(packed);
  const option = make(
    "li",
    { role: "option", id: `case-${index}`, "aria-selected": "false", "data-case": packed.id, class: mark },
    make("span", { class: "number" }, String(packed.id)),
    ...[packed.true, packed.predicted].map((k) => make("span", { class: "label", title: label(k) }, label(k))),
    make("span", { class: "number" }, p === null ? "" : percent(p)),
    make("span", { class: "mark", role: "img", "aria-label": mark }, { correct: "✓", wrong: "✗" }[mark] ?? "")
  );
  option.addEventListener("click", () => openCase(index));
  return option;
});

const orders = {
  id: (a, b) => a.id - b.id,
  mistakes: (a, b) => (verdict(b) === "wrong") - (verdict(a) === "wrong") || a.id - b.id,
  unsure: (a, b) => certainty(a) - certainty(b) || a.id - b.id,
  sure: (a, b) => certainty(b) - certainty(a) || a.id - b.id,
  predicted: (a, b) => a.predicted - b.predicted || a.id - b.id,
};

function applyFilters() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const trueLabel = $("filter-true")?.value ?? "";
  const predictedLabel = $("filter-predicted").value;
  const onlyMistakes = $("only-mistakes")?.checked ?? false;
  const passes = (packed) => {
    const text = `${packed.id} ${label(packed.true)} ${label(packed.predicted)}`.toLowerCase();
    return (
      words.every((word) => text.includes(word)) &&
      (trueLabel === "" || packed.true === Number(trueLabel)) &&
      (predictedLabel === "" || packed.predicted === Number(predictedLabel)) &&
      (!onlyMistakes || verdict(packed) === "wrong")
    );
  };
  const order = orders[$("sort").value];
  state.listed = [...data.cases.keys()].filter((i) => passes(data.cases[i]));
  state.listed.sort((a, b) => order(data.cases[a], data.cases[b]));
  $("cases").replaceChildren(...state.listed.map((i) => options[i]));
  const all = `${data.cases.length} case${data.cases.length === 1 ? "" : "s"}`;
  const filtered = words.length > 0 || trueLabel !== "" || predictedLabel !== "" || onlyMistakes;
  $("count").textContent = filtered ? `${state.listed.length} of ${all}` : all;
  $("clear").hidden = !filtered;
  if (state.listed.length && !state.listed.includes(state.index)) openCase(state.listed[0]);
}

function setFilters(trueLabel, predictedLabel) {
  $("search").value = "";
  if ($("only-mistakes")) $("only-mistakes").checked = false;
  if ($("filter-true")) $("filter-true").value = trueLabel;
  $("filter-predicted").value = predictedLabel;
  applyFilters();
}

function moveCase(by) {
  if (!state.listed.length) return;
  const at = state.listed.indexOf(state.index);
  openCase(state.listed[clamp(at + by, 0, state.listed.length - 1)]);
}

// --- the chosen case ---------------------------------------------------------------------------

function openCase(index) {
  if (index === state.index) return;
  const before = state.shown;
  const shown = unpack(data.cases[index], data.evidence_bytes);
  options[state.index]?.setAttribute("aria-selected", "false");
  options[index].setAttribute("aria-selected", "true");
  $("cases").setAttribute("aria-activedescendant", options[index].id);
  Object.assign(state, { index, shown, cursor: null });
  if (before?.length !== shown.length) Object.assign(state, { from: 0, to: shown.columns });
  state.opened.clear();
  revealInList(options[index]);

  const mark = verdict(shown);
  $("case").dataset.case = shown.id;
  $("case-title").textContent = `Case ${shown.id}`;
  $("verdict").replaceChildren(
    ...(mark ? ["true ", make("b", { class: "label" }, label(shown.true)), ", "] : []),
    "predicted ",
    make("b", { class: "label" }, label(shown.predicted)),
    ...(mark ? [make("span", { class: `badge ${mark}` }, mark === "correct" ? "✓ correct" : "✗ wrong")] : [])
  );
  $("thinned").hidden = shown.step === 1;
  $("thinned").textContent =
    `${shown.length.toLocaleString("en")} time points, thinned for display: each column shows ${shown.step} of them ` +
    "with their lowest and highest value and their strongest evidence.";
  const classes = [...shown.classes.keys()];
  $("target").replaceChildren(...classes.map((k) => make("option", { value: k }, label(k))));
  $("target").disabled = classes.length < 2;
  const channels = shown.channels.map((channel, row) => make("option", { value: row }, `channel ${channel}`));
  $("go").replaceChildren(make("option", { value: "" }, "channel …"), ...channels);
  $("go-label").hidden = channels.length < 2;
  $("shared-label").hidden = channels.length < 2 || !shown.values;
  chooseClass(classes.includes(shown.predicted) ? shown.predicted : classes[0]);
}

/** Scroll the list, not the page. */
function revealInList(option) {
  const list = $("cases");
  const top = option.offsetTop - list.offsetTop;
  const least = top + option.offsetHeight - list.clientHeight;
  if (list.scrollTop > top || list.scrollTop < least) list.scrollTop = list.scrollTop > top ? top : least;
}

function chooseClass(target) {
  state.target = target;
  $("target").value = target;
  $("case").dataset.target = target;
  const { logit, sum } = state.shown.classes.get(target);
  $("logit").textContent = sum
    ? `Base ${sum[0]} + evidence ${sum[1]} = logit ${sum[2]} of ${label(target)}`
    : logit === null ? "" : `Logit of ${label(target)}: ${format(logit)}`;
  showProbabilities();
  showPlots();
}

function showProbabilities() {
  const { shown, target } = state;
  const bars = (shown.probabilities ?? []).map(([k, p]) => {
    const explained = shown.classes.has(k);
    const roles = [k === shown.true && "true", k === shown.predicted && "predicted"].filter(Boolean).join(", ");
    const bar = make(
      "button",
      { type: "button", class: "bar", "data-class": k, disabled: !explained,
        "aria-pressed": explained ? String(k === target) : null, "aria-label": `${label(k)} ${percent(p)} ${roles}` },
      make("span", { class: "label" }, label(k)),
      make("span", { class: "track" }, make("span", { style: `width: ${(100 * p).toFixed(2)}%` })),
      make("span", { class: "number" }, percent(p)),
      make("span", { class: "quiet" }, roles)
    );
    bar.addEventListener("click", () => {
      chooseClass(k);
      $("bars").querySelector(`[data-class="${k}"]`).focus();
    });
    return bar;
  });
  $("bars").replaceChildren(...bars);
}

function showPlots() {
  const { shown } = state;
  const several = shown.channels.length > 1;
  const ranked = [...shown.channels.keys()].sort((a, b) => share(state, b) - share(state, a) || a - b);
  const open = ranked.filter((row, rank) => state.all || rank < FEW_CHANNELS || state.opened.has(row));
  const heatHeight = shown.channels.length * clamp(Math.round(320 / shown.channels.length), 5, 18) + AXIS;
  const height = !shown.values ? 90 : several ? 170 : 300;
  plots = [
    makePlot("overview", -1, 70, several ? "All channels together" : "Whole length", "drag to zoom"),
    ...(several ? [makePlot("heat", -1, heatHeight, "Channels", "choose a row to open the channel")] : []),
    ...open.map((row) =>
      makePlot("channel", row, height, `Channel ${shown.channels[row]}`, `${percent(share(state, row))} of the evidence`)
    ),
  ];
  $("plots").replaceChildren(...plots.map((plot) => plot.figure));
  $("show-all").hidden = shown.channels.length <= FEW_CHANNELS;
  $("show-all").textContent = state.all ? "Show the most important channels only" : `Show all ${shown.channels.length} channels`;
  draw();
  point(null);
}

function draw() {
  const { shown, from, to, mode } = state;
  const [first, last] = [from * shown.step, Math.min(shown.length, to * shown.step) - 1];
  $("range").textContent = `${first} – ${last} of ${shown.length.toLocaleString("en")}`;
  Object.assign($("case").dataset, { from: first, to: last, mode });
  for (const plot of plots) paint(state, plot);
}

// --- pointing and zooming ----------------------------------------------------------------------

function makePlot(kind, row, height, name, hint) {
  const canvas = make("canvas", { style: `height: ${height}px` });
  const cursor = make("i", { class: "cursor", hidden: true });
  const brush = make("i", { class: "brush", hidden: true });
  const area = make("div", { class: "area" }, canvas, cursor, brush);
  const figure = make(
    "figure",
    { class: "plot", tabindex: 0, role: "img", "aria-label": `${name}: ${hint}. Shift and arrow keys read values.`,
      "data-kind": kind, "data-channel": row < 0 ? null : state.shown.channels[row] },
    make("figcaption", {}, make("b", {}, name), make("span", { class: "quiet" }, hint)),
    area
  );
  const plot = { kind, row, height, figure, area, canvas, cursor, brush };
  let start = null;
  const selected = (event) => [columnAt(state, plot, start), columnAt(state, plot, event.clientX)].sort((a, b) => a - b);
  const moved = (event) => start !== null && Math.abs(event.clientX - start) >= 4;
  const stop = () => {
    start = null;
    brush.hidden = true;
  };
  area.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    start = event.clientX;
    area.setPointerCapture(event.pointerId);
  });
  area.addEventListener("pointermove", (event) => {
    const column = Math.min(Math.floor(columnAt(state, plot, event.clientX)), state.shown.columns - 1);
    point(plot, column, kind === "heat" ? heatRowAt(state, plot, event.clientY) : row, event);
    if (!moved(event)) return;
    const [left, right] = selected(event).map((column) => xAt(state, plot, column));
    brush.hidden = false;
    Object.assign(brush.style, { left: `${left}px`, width: `${right - left}px` });
  });
  area.addEventListener("pointerup", (event) => {
    const range = moved(event) ? selected(event) : null;
    const clicked = start !== null && !range;
    stop();
    if (range) show(Math.floor(range[0]), Math.ceil(range[1]));
    else if (clicked && kind === "heat") openChannel(heatRowAt(state, plot, event.clientY));
  });
  area.addEventListener("pointercancel", stop);
  area.addEventListener("pointerleave", () => point(null));
  area.addEventListener("dblclick", () => show(0, state.shown.columns));
  area.addEventListener("wheel", (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!sideways && !event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    if (sideways) pan((Math.sign(event.deltaX) * (state.to - state.from)) / 20);
    else zoom(event.deltaY > 0 ? 1.25 : 0.8, columnAt(state, plot, event.clientX));
  }, { passive: false });
  return plot;
}

/** Put the cursor on a column of a plot and tell what is there; without a plot, remove it. */
function point(plot, column, row, pointer) {
  const { shown } = state;
  const tip = $("tip");
  tip.hidden = !plot;
  for (const other of plots) {
    other.cursor.hidden = !plot || (other.kind !== "overview" && (column < state.from || column >= state.to));
    if (plot) other.cursor.style.left = `${xAt(state, other, column + 0.5)}px`;
  }
  if (!plot) return;
  state.cursor = column;
  const { scale, unit } = evidenceOf(state, row);
  const { up, down, net } = strongest(state, row, column, column + 1);
  const amount = (fraction) => format(Math.round((fraction * scale) / unit) * unit);
  const first = column * shown.step;
  const last = Math.min(shown.length, first + shown.step) - 1;
  const most = shown.step > 1 ? "up to " : "";
  const [low, high] = row >= 0 && shown.values ? [0, 1].map((end) => valueAt(shown, row, column, end)) : [];
  const facts = [
    ["time", last > first ? `${first}–${last}` : String(first)],
    ...(low === undefined ? [] : [["value", low === high ? format(low) : `${format(low)} to ${format(high)}`]]),
    ["for", most + amount(up)],
    ["against", most + amount(down)],
    ["net", (net > 0 ? "+" : "") + amount(net)],
  ];
  const name = row >= 0 ? `Channel ${shown.channels[row]}` : shown.channels.length > 1 ? "All channels" : "Evidence";
  const list = facts.flatMap(([term, text]) => [make("dt", { class: term }, term), make("dd", {}, text)]);
  tip.replaceChildren(make("b", {}, name), make("dl", {}, ...list));
  const channel = shown.channels[row] ?? "all";
  Object.assign(tip.dataset, { time: first, channel, value: low ?? "", for: up * scale, against: down * scale, net: net * scale });
  const box = plot.area.getBoundingClientRect();
  const x = pointer?.clientX ?? box.left + xAt(state, plot, column + 0.5);
  const y = pointer?.clientY ?? box.top + 20;
  const left = x + 16 + tip.offsetWidth > window.innerWidth ? x - 16 - tip.offsetWidth : x + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${clamp(y + 12, 4, Math.max(4, window.innerHeight - tip.offsetHeight - 4))}px`;
  if (!pointer) $("readout").textContent = `${name}, ${facts.map((fact) => fact.join(" ")).join(", ")}`;
}

/** Move the cursor in the plot that has the focus, or in the first channel. */
function moveCursor(by) {
  const { shown, cursor, from, to } = state;
  const focused = plots.find((plot) => plot.figure === document.activeElement);
  const plot = focused ?? plots.find((other) => other.kind === "channel");
  if (!focused) plot.figure.focus();
  const next = cursor === null ? Math.floor((from + to) / 2) : clamp(cursor + by, 0, shown.columns - 1);
  if (next < from || next >= to) pan(next < from ? next - from : next + 1 - to);
  point(plot, next, plot.row);
}

function show(from, to) {
  const { columns } = state.shown;
  const width = clamp(to - from, Math.min(FEWEST_COLUMNS, columns), columns);
  state.from = clamp(Math.round((from + to - width) / 2), 0, columns - width);
  state.to = state.from + width;
  point(null);
  draw();
}

function zoom(factor, around = (state.from + state.to) / 2) {
  const { columns } = state.shown;
  const width = clamp(Math.round((state.to - state.from) * factor), Math.min(FEWEST_COLUMNS, columns), columns);
  const from = clamp(Math.round(around - ((around - state.from) / (state.to - state.from)) * width), 0, columns - width);
  show(from, from + width);
}

function pan(by) {
  const width = state.to - state.from;
  const from = clamp(state.from + (by < 0 ? Math.floor(by) : Math.ceil(by)), 0, state.shown.columns - width);
  show(from, from + width);
}

function openChannel(row) {
  const find = () => plots.find((plot) => plot.kind === "channel" && plot.row === row);
  if (!find()) {
    state.opened.add(row);
    showPlots();
  }
  find().figure.scrollIntoView({ block: "center" });
  find().figure.focus({ preventScroll: true });
}

// --- controls ----------------------------------------------------------------------------------

const preference = matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = null;

function setTheme(theme = chosenTheme ?? (preference.matches ? "dark" : "light")) {
  document.documentElement.dataset.theme = theme;
  $("theme").setAttribute("aria-pressed", String(theme === "dark"));
  if (state.shown) draw();
}

$("theme").addEventListener("click", () => {
  chosenTheme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  setTheme();
});
preference.addEventListener("change", () => setTheme());
addEventListener("beforeprint", () => setTheme("light"));
addEventListener("afterprint", () => setTheme());

$("search").addEventListener("input", applyFilters);
for (const id of ["filter-true", "filter-predicted", "only-mistakes", "sort"]) {
  $(id)?.addEventListener("change", applyFilters);
}
$("clear").addEventListener("click", () => setFilters("", ""));
$("previous").addEventListener("click", () => moveCase(-1));
$("next").addEventListener("click", () => moveCase(1));
$("target").addEventListener("change", (event) => chooseClass(Number(event.target.value)));
$("mode").addEventListener("change", (event) => {
  state.mode = event.target.value;
  draw();
});
$("shared").addEventListener("change", (event) => {
  state.shared = event.target.checked;
  draw();
});
$("go").addEventListener("change", (event) => {
  if (event.target.value !== "") openChannel(Number(event.target.value));
  event.target.value = "";
});
$("show-all").addEventListener("click", () => {
  state.all = !state.all;
  showPlots();
});
$("zoom-in").addEventListener("click", () => zoom(0.5));
$("zoom-out").addEventListener("click", () => zoom(2));
$("zoom-reset").addEventListener("click", () => show(0, state.shown.columns));
$("help-open").addEventListener("click", () => $("help").showModal());
$("confusion")?.addEventListener("click", (event) => {
  const cell = event.target.closest("button");
  if (!cell) return;
  setFilters(cell.dataset.true, cell.dataset.predicted);
  $("cases").scrollIntoView({ block: "nearest" });
  $("cases").focus();
});

const keys = {
  ArrowUp: () => moveCase(-1),
  k: () => moveCase(-1),
  ArrowDown: () => moveCase(1),
  j: () => moveCase(1),
  ArrowLeft: (event) => (event.shiftKey ? moveCursor(-1) : pan(-(state.to - state.from) / 10)),
  ArrowRight: (event) => (event.shiftKey ? moveCursor(1) : pan((state.to - state.from) / 10)),
  "+": () => zoom(0.5),
  "=": () => zoom(0.5),
  "-": () => zoom(2),
  0: () => show(0, state.shown.columns),
  "/": () => $("search").focus(),
  "?": () => $("help").showModal(),
  Escape: () => point(null),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const typing = event.target.matches("input[type=search], select");
  const choosing = event.target.matches("input[type=radio]") && event.key.startsWith("Arrow");
  if (typing || choosing || !Object.hasOwn(keys, event.key)) return;
  event.preventDefault();
  keys[event.key](event);
});

setTheme();
applyFilters();
new ResizeObserver(() => draw()).observe($("plots"));
