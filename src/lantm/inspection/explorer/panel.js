/** One machine on one problem. `page`, `position`, `checkpoints` and `go` are those of page.js. */

/** A new element. Names and symbols get into the page here, as text, and nowhere else ... */
function element(tag, { text = "", ...rest } = {}, ...children) {
  const made = Object.assign(document.createElement(tag), rest);
  made.append(text, ...children);
  return made;
}

/** ... but for Plotly's labels, where markup has to be made harmless. */
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

const numbers = (values, digits = 2) => "(" + values.map((x) => x.toFixed(digits)).join(", ") + ")";
const length = (vector) => Math.hypot(...vector);

/** From white (0) to a colour (1). */
function tint(colour, share) {
  const parts = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return `rgb(${parts.map((part) => Math.round(255 + share * (part - 255))).join(",")})`;
}

/** Near the middle of its strip, at the top of a row, without moving the page. */
function centre(cell) {
  const strip = cell.parentElement;
  const row = cell.offsetHeight + 2;
  const above = Math.floor(strip.clientHeight / row / 2);
  strip.scrollTop = Math.max(0, cell.offsetTop - strip.firstElementChild.offsetTop - above * row);
}

class Panel {
  constructor(model, number) {
    Object.assign(this, { model, number, problem: model.examples[number], trace: null });
    this.inputs = this.problem.input.length;
    this.steps = this.inputs + this.problem.answer.length;
    this.about = element("p", { className: "about" });
    this.input = element("div", { className: "symbols" });
    this.answer = element("div", { className: "symbols" });
    this.inputCaption = element("p", { className: "caption", text: "input" });
    this.answerCaption = element("p", { className: "caption" });
    this.views = element("div", { className: "views" });
    this.diagnostics = element("dl", { className: "diagnostics" });
    this.root = element(
      "section", { className: "panel" }, element("h2", { text: model.name }), this.about,
      this.inputCaption, this.input, this.answerCaption, this.answer, this.views, this.diagnostics,
    );
    this.buildViews(model.traces[0][number]);
  }

  buildViews({ memories }) {
    if (!memories) {
      this.hidden = element("div", { className: "hidden-state" });
      return this.views.append(this.hidden);
    }
    this.keys = element("div", { className: "keys" });
    this.weights = element("div", { className: "weights" });
    this.doing = element("div", { className: "doing" });
    this.inputCaption.append("; coloured where its memory is being read");
    this.views.classList.add("memory");
    this.views.append(this.keys, element("div", {}, this.weights, this.doing));
  }

  show() {
    const step = Math.min(position.step, this.steps - 1);
    const trace = this.model.traces[this.checkpoint()][this.number];
    if (trace !== this.trace) {
      this.trace = trace;
      this.showTrace();
    }
    this.showSymbols(step);
    if (trace.memories) {
      this.drawKeys(step);
      this.drawWeights(step);
      this.showDoing(step);
    } else {
      this.drawHidden(step);
    }
  }

  /** The model's own last checkpoint up to the chosen one. */
  checkpoint() {
    const chosen = rank(checkpoints[position.checkpoint]);
    const reached = this.model.checkpoints.filter((name) => rank(name) <= chosen);
    return Math.max(0, reached.length - 1);
  }

  /** What depends on the checkpoint but not on the step. */
  showTrace() {
    const { model, problem, trace } = this;
    const right = problem.answer.filter((symbol, i) => symbol === trace.answer[i]).length;
    const name = model.checkpoints[this.checkpoint()];
    this.about.textContent =
      `${model.task}, ${model.model}, example ${this.number + 1}, ${label(name)}: ` +
      `${right} of ${problem.answer.length} symbols right`;
    this.answerCaption.textContent = right < problem.answer.length
      ? "answer; wrong symbols struck out, the right one behind" : "answer";
    const cell = (step, title, ...content) => {
      const made = element("button", { type: "button", className: "symbol", title }, ...content);
      made.onclick = () => go({ step });
      return made;
    };
    this.input.replaceChildren(
      ...problem.input.map((symbol, i) => cell(i, `step ${i + 1}`, symbol)),
    );
    this.answer.replaceChildren(
      ...problem.answer.map((symbol, i) => {
        const given = trace.answer[i], step = this.inputs + i;
        if (given === symbol) return cell(step, `step ${step + 1}: right`, symbol);
        const made = cell(step, `step ${step + 1}: wrong`, element("s", { text: given }), " ", symbol);
        made.classList.add("wrong");
        return made;
      }),
    );
    this.diagnostics.replaceChildren(
      ...(trace.diagnostics ?? []).map(([name, value, title]) =>
        element("div", { title }, element("dt", { text: name + " " }), element("dd", { text: value }))),
    );
  }

  showSymbols(step) {
    const cells = this.root.querySelectorAll(".symbol");
    const reads = this.trace.reads ?? [];
    const onSymbol = reads.map(({ weights }) => this.bySymbol(weights[step]));
    cells.forEach((cell, i) => {
      cell.classList.toggle("now", i === step);
      cell.classList.toggle("later", i > step);
      const weights = onSymbol.map((values) => values[i] ?? 0);
      const most = Math.max(0, ...weights);
      cell.style.background = most > 0.02 ? tint(reads[weights.indexOf(most)].colour, most * 0.75) : "";
    });
    const busiest = onSymbol[this.trace.busiest] ?? [];
    const answering = step >= this.inputs;
    centre(cells[answering ? Math.max(0, busiest.indexOf(Math.max(...busiest))) : step]);
    centre(cells[answering ? step : this.inputs]);
  }

  /** Weights of memories, summed up for each input symbol; without those of the beginning. */
  bySymbol(weights) {
    const sums = Array(this.inputs).fill(0);
    weights.slice(this.model.initial).forEach((weight, i) => {
      sums[Math.floor(i / this.trace.writes.length)] += weight;
    });
    return sums;
  }

  /** The head that wrote a memory; the first, if it was there before. */
  writer(i) {
    const { writes } = this.trace;
    return writes[Math.max(0, i - this.model.initial) % writes.length];
  }

  memoryLabel(i) {
    const { writes } = this.trace;
    const at = Math.floor((i - this.model.initial) / writes.length);
    if (at < 0) return `memory ${i}: initial, there before the first step`;
    const by = writes.length > 1 ? `, ${this.writer(i).name}` : "";
    return `memory of ${plain(this.problem.input[at])}, step ${at + 1}${by}`;
  }

  drawKeys(step) {
    const { trace, inputs, keys } = this;
    const { writes, reads } = trace;
    const answering = step >= inputs;
    const count = this.model.initial + Math.min(step + 1, inputs) * writes.length;
    const memories = trace.memories.slice(0, count);
    const written = writes.map((head) =>
      memories.filter((_, i) => i >= this.model.initial && this.writer(i) === head));
    const details = memories.map((point, i) =>
      `${this.memoryLabel(i)}<br>${numbers(point)}<br>strength ${trace.strengths[i].toFixed(3)}` +
      reads.map(({ name, weights }) => `<br>${name}: weight ${(weights[step][i] ?? 0).toFixed(3)}`).join(""));
    const hover = (text) => ({ text, hovertemplate: "%{text}<extra></extra>" });
    const solid = trace.view === "sphere" || trace.view === "space";
    const size = solid || trace.memories.length > 40 ? 6 : 9;
    const width = solid ? 2 : 1;
    const path = { sphere: alongSphere, torus: aroundTorus }[trace.view] ?? ((points) => points);
    const plot = (name, points, rest) => ({
      type: solid ? "scatter3d" : "scatter", name, ...rest,
      x: points.map((p) => p[0]), y: points.map((p) => (p.length > 1 ? p[1] : 0)),
      ...(solid && { z: points.map((p) => p[2]) }),
    });
    const silent = { hoverinfo: "skip", showlegend: false };
    const traces = [
      ...reads.map(({ name, colour, weights }) =>
        plot(`${name} weight`, memories.slice(0, weights[step].length), {
          mode: "markers", ...silent,
          marker: {
            color: colour, opacity: 0.25, line: { width: 0 },
            size: weights[step].map((weight) => 4.5 * size * Math.sqrt(weight)),
          },
        })),
      ...writes.map(({ name, colour }, i) =>
        plot(`${name} trail`, path(written[i]), {
          mode: "lines", ...silent, line: { color: colour, width },
        })),
      plot("memory", memories, {
        mode: "markers", ...hover(details),
        marker: {
          size, color: memories.map((_, i) => tint(this.writer(i).colour, Math.sqrt(trace.strengths[i]))),
          line: { color: memories.map((_, i) => this.writer(i).colour), width: 1 },
        },
      }),
      ...reads.map(({ name, colour, places }) =>
        plot(`${name} trail`, path(places.slice(answering ? inputs : Math.max(0, step - 8), step + 1)), {
          mode: "lines", ...silent, line: { color: colour, width, dash: solid ? "solid" : "dot" },
        })),
      ...writes.map(({ name, colour }, i) =>
        plot(name, answering ? [NOWHERE] : written[i].slice(-1), {
          mode: "markers", ...hover([`${name}<br>${numbers(written[i].at(-1))}`]),
          marker: { symbol: "diamond", size: 1.6 * size, color: colour, line: EDGE },
        })),
      ...reads.map(({ name, colour, places }) =>
        plot(name, [places[step]], {
          mode: "markers", ...hover([`${name}<br>${numbers(places[step])}`]),
          // In space Plotly draws letters; not every machine has one for the cross.
          marker: { symbol: solid ? "square" : "x", size: 1.4 * size, color: colour, line: EDGE },
        })),
    ];
    if (trace.view === "sphere") traces.unshift(BALL, GLOBE);
    Plotly.react(keys, traces, this.keysLayout(solid), CONFIG);
  }

  keysLayout(solid) {
    const { view, axes, memories, reads } = this.trace;
    const outline = OUTLINES[view];
    const range = (i) => {
      if (outline) return [1.08 * outline.x0, 1.08 * outline.x1];
      const all = [...memories, ...reads.flatMap(({ places }) => places)].map((point) => point[i] ?? 0);
      const low = Math.min(...all), high = Math.max(...all), room = 0.08 * (high - low) || 0.5;
      return [low - room, high + room];
    };
    const axis = (i) => ({ title: { text: axes[i] }, range: range(i), zeroline: false });
    const common = {
      ...LAYOUT, uirevision: this.checkpoint(), margin: { l: 48, r: 8, t: 28, b: 40 },
      legend: {
        orientation: "h", x: 0, y: 1, yanchor: "bottom",
        itemsizing: "constant", itemclick: false, itemdoubleclick: false,
      },
    };
    if (!solid) {
      const shapes = outline ? [outline] : [];
      return { ...common, shapes, xaxis: axis(0), yaxis: { ...axis(1), scaleanchor: "x" } };
    }
    const bare = view === "sphere" ? { visible: false, range: [-1.05, 1.05] } : {};
    const scene = {
      xaxis: { ...axis(0), ...bare }, yaxis: { ...axis(1), ...bare }, zaxis: { ...axis(2), ...bare },
      aspectmode: view === "sphere" ? "cube" : "data", uirevision: "same",
      camera: { eye: { x: 0.95, y: 0.95, z: 0.6 } },
    };
    return { ...common, scene, margin: { l: 0, r: 0, t: 28, b: 0 } };
  }

  drawWeights(step) {
    const bars = this.trace.reads.map(({ name, colour, weights }) => ({
      type: "bar", name, x: weights[step].map((_, i) => i), y: weights[step],
      marker: { color: colour }, text: weights[step].map((_, i) => this.memoryLabel(i)),
      textposition: "none", hovertemplate: `%{text}<br>${name}: weight %{y:.3f}<extra></extra>`,
    }));
    const initial = [...Array(this.model.initial).keys()].join(", ");
    Plotly.react(this.weights, bars, {
      ...LAYOUT, margin: { l: 48, r: 8, t: 8, b: 38 }, bargap: 0.1, showlegend: false,
      xaxis: {
        title: { text: `memory, in order of writing (${initial}: initial)` }, zeroline: false,
        range: [-0.7, this.trace.memories.length - 0.3],
      },
      yaxis: { title: { text: "read weight" }, range: [0, 1.02], fixedrange: true },
    }, CONFIG);
  }

  showDoing(step) {
    const { trace, inputs } = this;
    const line = ({ name, colour }, text, className = "") =>
      element("p", { className, style: `border-color: ${colour}`, text: name + text });
    const writes = trace.writes.map((head, i) => {
      if (step >= inputs) return line(head, ": rests while answering", "idle");
      const at = this.model.initial + step * trace.writes.length + i;
      return line(head, ` at ${numbers(trace.memories[at])}${describeHead(head, step)}` +
        `, strength ${trace.strengths[at].toFixed(2)}`);
    });
    const reads = trace.reads.map((head) =>
      line(head, ` at ${numbers(head.places[step])}${describeHead(head, step)}`));
    const gate = trace.output_gate?.[step];
    const output = gate === undefined ? [] : [element("p", { text: `output gate ${gate.toFixed(2)}` })];
    this.doing.replaceChildren(...writes, ...reads, ...output);
  }

  drawHidden(step) {
    const { hidden, slots } = this.trace;
    const maps = slots ?? [{ name: "", weights: hidden }];
    const row = slots ? "slot" : "cell";
    const title = slots
      ? "read weights of slots (memories without keys)" : "hidden state (this model has no memory to show)";
    const number = (i) => (i ? i + 1 : "");
    const heat = ({ name, weights }, i) => ({
      type: "heatmap", name, yaxis: `y${number(i)}`, coloraxis: "coloraxis", x0: 1,
      z: weights[0].map((_, j) => weights.map((values) => values[j])),
      hovertemplate: `step %{x}, ${row} %{y}: %{z}<extra></extra>`,
    });
    const rows = maps.map(({ name }, i) =>
      [`yaxis${number(i)}`, { title: { text: maps.length > 1 ? name : row } }]);
    const line = (x, dash) =>
      ({ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { dash, width: 2 } });
    Plotly.react(this.hidden, maps.map(heat), {
      ...LAYOUT, margin: { l: 48, r: 8, t: 30, b: 40 },
      title: { text: title, font: { size: 13 } },
      coloraxis: { cmin: slots ? 0 : -1, cmax: 1, colorscale: "Cividis", colorbar: { thickness: 10 } },
      grid: { rows: maps.length, columns: 1, ygap: 0.15, subplots: maps.map((_, i) => [`xy${number(i)}`]) },
      xaxis: { title: { text: "step: input, then answer" } }, ...Object.fromEntries(rows),
      shapes: [line(this.inputs + 0.5, "dash"), line(step + 1, "solid")],
    }, CONFIG);
  }
}

function describeHead({ gate, action, action_gate }, step) {
  const parts = [];
  if (action) parts.push(`moved by ${numbers(action[step])}, length ${length(action[step]).toFixed(3)}`);
  if (Array.isArray(gate?.[step])) parts.push(`own, next and previous key mixed by ${numbers(gate[step])}`);
  else if (gate) parts.push(`random access ${gate[step].toFixed(3)}`);
  if (action_gate) parts.push(`new action ${action_gate[step].toFixed(3)}`);
  return parts.map((part) => ", " + part).join("");
}

const CONFIG = {
  displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "toImage"],
};
const LAYOUT = { font: { family: "inherit", size: 12 }, hoverlabel: { align: "left" } };
/** What is there is in the legend. */
const NOWHERE = [null, null, null];
const EDGE = { color: "white", width: 1 };

/** What manifolds look like in the plane, by view. */
const OUTLINES = (() => {
  const within = (type, size) => ({
    type, x0: -size, x1: size, y0: -size, y1: size, layer: "below", line: { color: "#a9b0b8", width: 1 },
  });
  return { circle: within("circle", 1), disc: within("circle", 1), torus: within("rect", Math.PI) };
})();

/** Meridians and parallels of the unit sphere, as one line with gaps. */
const GLOBE = (() => {
  const turn = (n, f) => Array.from({ length: n + 1 }, (_, i) => f((2 * Math.PI * i) / n));
  const circles = [];
  for (let k = 0; k < 6; k++) {
    const a = (Math.PI * k) / 6, b = (Math.PI * (k - 2.5)) / 6;
    circles.push(turn(48, (t) => [Math.cos(t) * Math.cos(a), Math.cos(t) * Math.sin(a), Math.sin(t)]));
    circles.push(turn(48, (t) => [Math.cos(t) * Math.cos(b), Math.sin(t) * Math.cos(b), Math.sin(b)]));
  }
  const points = circles.flatMap((circle) => [...circle, [null, null, null]]);
  return {
    type: "scatter3d", name: "sphere", mode: "lines", hoverinfo: "skip", showlegend: false,
    connectgaps: false, line: { color: "#c9d0d8", width: 1 },
    x: points.map((p) => p[0]), y: points.map((p) => p[1]), z: points.map((p) => p[2]),
  };
})();

/** A veil inside the sphere: what is behind it is paler. */
const BALL = (() => {
  const angles = (n, range) => Array.from({ length: n + 1 }, (_, i) => (range * i) / n);
  const map = (f) => angles(24, Math.PI).map((a) => angles(48, 2 * Math.PI).map((b) => 0.93 * f(a, b)));
  return {
    type: "surface", name: "veil", opacity: 0.55, showscale: false, hoverinfo: "skip",
    colorscale: [[0, "white"], [1, "white"]], contours: { x: { highlight: false }, y: { highlight: false }, z: { highlight: false } },
    lighting: { ambient: 1, diffuse: 0, specular: 0, fresnel: 0 },
    x: map((a, b) => Math.sin(a) * Math.cos(b)), y: map((a, b) => Math.sin(a) * Math.sin(b)), z: map((a) => Math.cos(a)),
  };
})();

/** The same path with great arcs between its points. */
function alongSphere(points) {
  const between = (a, b) => Array.from({ length: 8 }, (_, k) => {
    const point = a.map((x, i) => x + (k / 8) * (b[i] - x));
    return point.map((x) => x / (length(point) || 1));
  });
  return [...points.slice(1).flatMap((point, i) => between(points[i], point)), ...points.slice(-1)];
}

/** The same path with gaps where it goes over a side of the square, which comes back on the other. */
function aroundTorus(points) {
  const jumps = (a, b) => a.some((x, i) => Math.abs(x - b[i]) > Math.PI);
  return points.flatMap((point, i) =>
    i > 0 && jumps(points[i - 1], point) ? [[null, null], point] : [point]);
}
