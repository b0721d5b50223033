// Unpacks a case and paints its plots. Nothing here touches the page but the canvases it is given.
// A view is { shown, target, mode, shared, from, to }: an unpacked case, the class whose evidence is
// painted, how, and the visible columns. A plot is { kind, row, area, canvas, height }; row -1 means
// all channels together.

const LEFT = 54; // margins of every plot, in pixels: equal, so that times line up
const RIGHT = 10;
const AXIS = 16;
const MISSING = -32768;

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

function format(value) {
  if (value === null) return "missing";
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

// --- a case ------------------------------------------------------------------------------------

function decode(text, Type) {
  return new Type(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}

/** Evidence as whole numbers: for, then against, `rows` rows each; `net` only if the case is thinned. */
function evidence(codes, net, bytes, scale, rows) {
  return {
    codes: decode(codes, bytes === 2 ? Uint16Array : Uint8Array),
    net: net ? decode(net, bytes === 2 ? Int16Array : Int8Array) : null,
    top: bytes === 2 ? 65535 : 255,
    netTop: bytes === 2 ? 32767 : 127,
    unit: 10 ** Math.floor(Math.log10((scale || 1) / (bytes === 2 ? 5000 : 50))), // no more digits than are known
    scale,
    rows,
  };
}

function unpack(packed, bytes) {
  const classes = new Map();
  for (const entry of packed.explained) {
    classes.set(entry.class, {
      ...entry,
      sums: decode(entry.sums, Float32Array),
      scores: evidence(entry.scores, entry.net, bytes, packed.scale, packed.channels.length),
      total: evidence(entry.total, entry.total_net, 2, packed.total_scale, 1),
    });
  }
  return {
    ...packed,
    columns: Math.ceil(packed.length / packed.step),
    classes,
    values: packed.values ? decode(packed.values, Int16Array) : null,
    ranges: packed.values ? decode(packed.ranges, Float64Array) : null,
    ends: packed.step > 1 ? 2 : 1, // lowest and highest value of a column, or just the value
  };
}

/** The value of a channel in a column; `end` 0 is the lowest, 1 the highest. */
function valueAt(shown, row, column, end) {
  const code = shown.values[(row * shown.ends + Math.min(end, shown.ends - 1)) * shown.columns + column];
  if (code === MISSING) return null;
  const [low, high] = [shown.ranges[2 * row], shown.ranges[2 * row + 1]];
  return low + ((code + 32767) / 65534) * (high - low);
}

function evidenceOf(view, row) {
  const entry = view.shown.classes.get(view.target);
  return row < 0 ? entry.total : entry.scores;
}

/** The evidence in columns a to b at its strongest, as fractions of the scale; `net` has a sign. */
function strongest(view, row, a, b) {
  const { codes, net, top, netTop, rows } = evidenceOf(view, row);
  const first = Math.max(0, row) * view.shown.columns;
  const second = first + rows * view.shown.columns;
  const peaks = { up: 0, down: 0, net: 0, most: 0, least: 0 };
  for (let column = a; column < b; column++) {
    const [up, down] = [codes[first + column] / top, codes[second + column] / top];
    const difference = net ? net[first + column] / netTop : up - down;
    peaks.up = Math.max(peaks.up, up);
    peaks.down = Math.max(peaks.down, down);
    peaks.most = Math.max(peaks.most, difference);
    peaks.least = Math.min(peaks.least, difference);
    if (Math.abs(difference) > Math.abs(peaks.net)) peaks.net = difference;
  }
  return peaks;
}

/** The same as the mode shows it: lengths of the bars up and down, and the tint, which has a sign. */
function visible(view, row, a, b) {
  const { up, down, net, most, least } = strongest(view, row, a, b);
  if (view.mode === "for") return { up, down: 0, tint: up };
  if (view.mode === "against") return { up: 0, down, tint: -down };
  return view.mode === "net" ? { up: most, down: -least, tint: net } : { up, down, tint: net };
}

/** The part of the evidence about the chosen class that a channel carries. */
function share(view, row) {
  const { sums } = view.shown.classes.get(view.target);
  const total = sums.reduce((sum, value) => sum + value, 0);
  return total ? (sums[row] + sums[row + view.shown.channels.length]) / total : 0;
}

// --- from columns to pixels and back -----------------------------------------------------------

function rangeOf(view, plot) {
  return plot.kind === "overview" ? { from: 0, to: view.shown.columns } : view;
}

function columnAt(view, plot, clientX) {
  const box = plot.area.getBoundingClientRect();
  const { from, to } = rangeOf(view, plot);
  return clamp(from + ((clientX - box.left - LEFT) / (box.width - LEFT - RIGHT)) * (to - from), from, to);
}

function xAt(view, plot, position) {
  const { from, to } = rangeOf(view, plot);
  return LEFT + ((position - from) / (to - from)) * (plot.area.clientWidth - LEFT - RIGHT);
}

function heatRowAt(view, plot, clientY) {
  const rows = view.shown.channels.length;
  const y = clientY - plot.area.getBoundingClientRect().top;
  return clamp(Math.floor((y / (plot.height - AXIS)) * rows), 0, rows - 1);
}

/** Call paint(x, a, b) for each pixel column, with the data columns a to b that it covers. */
function eachPixel(view, plot, width, paint) {
  const { from, to } = rangeOf(view, plot);
  const inner = Math.floor(width - LEFT - RIGHT);
  const perPixel = (to - from) / inner;
  for (let x = 0; x < inner; x++) {
    const a = Math.min(Math.floor(from + x * perPixel), view.shown.columns - 1);
    paint(LEFT + x, a, clamp(Math.ceil(from + (x + 1) * perPixel), a + 1, view.shown.columns));
  }
}

function niceSteps(low, high, count) {
  const rough = (high - low) / count;
  if (!(rough > 0) || !isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const first = Math.ceil(low / step);
  const n = Math.max(0, Math.floor(high / step + 1e-9) - first + 1);
  return Array.from({ length: n }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

// --- painting ----------------------------------------------------------------------------------

function paint(view, plot) {
  const style = getComputedStyle(document.documentElement);
  const names = ["ink", "quiet", "line", "for", "against", "paper", "accent", "font"];
  const css = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  const ratio = window.devicePixelRatio || 1;
  const width = plot.area.clientWidth;
  plot.canvas.width = Math.round(width * ratio);
  plot.canvas.height = Math.round(plot.height * ratio);
  if (width < LEFT + RIGHT + 10) return;
  const pen = plot.canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = `11px ${css.font}`;
  painters[plot.kind](pen, css, view, plot, width, plot.height);
}

const painters = {
  overview(pen, css, view, plot, width, height) {
    const bottom = height - AXIS;
    paintStrip(pen, css, view, plot, width, 0, bottom);
    paintTimes(pen, css, view, plot, width, height);
    if (view.to - view.from === view.shown.columns) return;
    const [a, b] = [xAt(view, plot, view.from), xAt(view, plot, view.to)];
    pen.globalAlpha = 0.72;
    pen.fillStyle = css.paper;
    pen.fillRect(LEFT, 0, a - LEFT, bottom);
    pen.fillRect(b, 0, width - RIGHT - b, bottom);
    pen.globalAlpha = 1;
    pen.strokeStyle = css.accent;
    pen.strokeRect(a, 0.5, Math.max(1, b - a), bottom - 1);
  },

  heat(pen, css, view, plot, width, height) {
    const rows = view.shown.channels.length;
    const size = (height - AXIS) / rows;
    const gap = size > 8 ? 1 : 0;
    for (let row = 0; row < rows; row++) {
      eachPixel(view, plot, width, (x, a, b) => paintTint(pen, css, visible(view, row, a, b).tint, x, row * size, size - gap));
    }
    pen.strokeStyle = css.line;
    pen.strokeRect(LEFT - 0.5, 0.5, width - LEFT - RIGHT + 1, height - AXIS - 1);
    const every = Math.ceil(12 / size);
    for (let row = 0; row < rows; row += every) paintName(pen, css, view.shown.channels[row], Math.max(6, (row + 0.5) * size));
    paintTimes(pen, css, view, plot, width, height);
  },

  channel(pen, css, view, plot, width, height) {
    const { values, ranges } = view.shown;
    const bottom = height - AXIS;
    paintTimes(pen, css, view, plot, width, height);
    if (!values) return paintStrip(pen, css, view, plot, width, 0, bottom);
    const strip = Math.max(44, bottom * 0.26);
    const series = bottom - strip - 6;
    eachPixel(view, plot, width, (x, a, b) => paintTint(pen, css, visible(view, plot.row, a, b).tint / 2, x, 0, series));
    const ends = ranges.filter((_, i) => view.shared || i >> 1 === plot.row);
    let [low, high] = [Math.min(...ends), Math.max(...ends)];
    if (low === high) [low, high] = [low - 1, high + 1];
    const y = (value) => 6 + (1 - (value - low) / (high - low)) * (series - 12);
    for (const tick of niceSteps(low, high, 3)) paintName(pen, css, format(tick), y(tick));
    paintLine(pen, css, view, plot, y);
    paintStrip(pen, css, view, plot, width, bottom - strip, strip);
  },
};

function paintName(pen, css, text, y) {
  pen.fillStyle = css.quiet;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  pen.fillText(text, LEFT - 8, y, LEFT - 10);
}

/** Fill a pixel column with the colour of what prevails there. */
function paintTint(pen, css, tint, x, top, height) {
  pen.globalAlpha = Math.abs(tint);
  pen.fillStyle = tint > 0 ? css.for : css.against;
  pen.fillRect(x, top, 1, height);
  pen.globalAlpha = 1;
}

/** Evidence for grows upwards from the base line, evidence against downwards. */
function paintStrip(pen, css, view, plot, width, top, height) {
  const base = Math.round(top + height * { both: 0.5, net: 0.5, for: 1, against: 0 }[view.mode]);
  const reach = view.mode === "both" || view.mode === "net" ? height / 2 : height;
  pen.fillStyle = css.line;
  pen.fillRect(LEFT, base, width - LEFT - RIGHT, 1);
  eachPixel(view, plot, width, (x, a, b) => {
    const { up, down } = visible(view, plot.row, a, b);
    pen.fillStyle = css.for;
    pen.fillRect(x, base - up * reach, 1, up * reach);
    pen.fillStyle = css.against;
    pen.fillRect(x, base, 1, down * reach);
  });
  if (view.mode !== "against") paintName(pen, css, "for", base - reach / 2);
  if (view.mode !== "for") paintName(pen, css, "against", base + reach / 2);
}

function paintTimes(pen, css, view, plot, width, height) {
  const { from, to } = rangeOf(view, plot);
  const { step, length } = view.shown;
  const count = clamp(Math.floor((width - LEFT) / 90), 2, 12);
  pen.textAlign = "center";
  pen.textBaseline = "bottom";
  for (const time of niceSteps(from * step, Math.min(length, to * step) - 1, count)) {
    if (time !== Math.round(time)) continue;
    const x = xAt(view, plot, Math.floor(time / step) + 0.5);
    pen.fillStyle = css.line;
    if (plot.kind === "channel") pen.fillRect(Math.round(x), 0, 1, height - AXIS);
    pen.fillStyle = css.quiet;
    pen.fillText(String(time), clamp(x, LEFT + 6, width - 16), height);
  }
}

/** The series, with gaps where values are missing; a thinned column goes from lowest to highest. */
function paintLine(pen, css, view, plot, y) {
  const { shown } = view;
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, 0, plot.area.clientWidth - LEFT - RIGHT, plot.height);
  pen.clip();
  pen.beginPath();
  let drawing = false;
  for (let column = Math.max(0, view.from - 1); column < Math.min(shown.columns, view.to + 1); column++) {
    const low = valueAt(shown, plot.row, column, 0);
    if (low !== null) {
      const x = xAt(view, plot, column + 0.5);
      if (!drawing) pen.moveTo(x, y(low));
      pen.lineTo(x + (drawing ? 0 : 0.01), y(low)); // so that a lone point between gaps is a dot
      if (shown.ends === 2) pen.lineTo(x, y(valueAt(shown, plot.row, column, 1)));
    }
    drawing = low !== null;
  }
  pen.strokeStyle = css.ink;
  pen.lineWidth = 1.4;
  pen.lineJoin = pen.lineCap = "round";
  pen.stroke();
  pen.restore();
}
