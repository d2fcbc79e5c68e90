/** The whole page: what it was told, where it stands, and its controls. */

const $ = (id) => document.getElementById(id);
const position = { step: 0, checkpoint: 0 };
let page, checkpoints, chosenModels, chosenExamples, panels = [], timer = null;

async function unpack(id) {
  const text = atob($(id).textContent), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

const rank = (name) => (/^\d+$/.test(name) ? Number(name) : Infinity);
const label = (name) => (/^\d+$/.test(name) ? `batch ${Number(name)}` : `${name} weights`);

function go({ step = position.step, checkpoint = position.checkpoint }) {
  const steps = Math.max(...panels.map((panel) => panel.steps));
  position.step = Math.max(0, Math.min(step, steps - 1));
  position.checkpoint = Math.max(0, Math.min(checkpoint, checkpoints.length - 1));
  $("step").max = steps - 1;
  $("step").value = position.step;
  $("checkpoint").value = position.checkpoint;
  const phases = new Set(panels.map((panel) => (position.step < panel.inputs ? "input" : "answering")));
  $("step-label").textContent = `${position.step + 1}/${steps}, ${[...phases].join(" and ")}`;
  $("checkpoint-label").textContent = label(checkpoints[position.checkpoint]);
  panels.forEach((panel) => panel.show());
}

function play(on = timer === null) {
  clearInterval(timer);
  timer = on ? setInterval(advance, 150) : null;
  $("play").textContent = on ? "Pause" : "Play";
}

function advance() {
  if (position.step >= Number($("step").max)) return play(false);
  go({ step: position.step + 1 });
}

function start() {
  if (position.step >= Number($("step").max) && timer === null) go({ step: 0 });
  play();
}

/** Check boxes, one for each of the names; at least one stays checked. */
function choice(title, names, checked) {
  const boxes = names.map((_, i) => element("input", { type: "checkbox", checked: checked(i) }));
  const labels = names.map((text, i) => element("label", {}, boxes[i], " " + text));
  const legend = element("legend", { text: title });
  const set = element("fieldset", { hidden: names.length < 2 }, legend, ...labels);
  set.onchange = (event) => {
    if (!boxes.some((box) => box.checked)) event.target.checked = true;
    build();
  };
  $("choices").append(set);
  return () => boxes.flatMap((box, i) => (box.checked ? [i] : []));
}

function build() {
  document.querySelectorAll(".js-plotly-plot").forEach((plot) => Plotly.purge(plot));
  panels = chosenModels().flatMap((i) => chosenExamples().map((j) => new Panel(page.models[i], j)));
  $("panels").replaceChildren(...panels.map((panel) => panel.root));
  go({});
}

function listen() {
  $("play").onclick = start;
  $("step").oninput = () => go({ step: Number($("step").value) });
  $("checkpoint").oninput = () => go({ checkpoint: Number($("checkpoint").value) });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === " " && event.target.matches("#play, input[type=checkbox]")) return;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const aim = event.shiftKey || event.target === $("checkpoint") ? "checkpoint" : "step";
    if (by) go({ [aim]: position[aim] + by });
    else if (event.key === " ") start();
    else if (event.key === "Home") go({ step: 0 });
    else if (event.key === "End") go({ step: Infinity });
    else return;
    event.preventDefault();
  });
}

async function main() {
  document.head.append(element("script", { text: await unpack("plotly") }));
  page = JSON.parse(await unpack("page"));
  document.title = page.models.map((model) => model.name).join(", ") + " - lantm explorer";
  for (const [name, colour] of Object.entries(page.colours)) {
    document.documentElement.style.setProperty("--" + name, colour);
  }
  checkpoints = [...new Set(page.models.flatMap((model) => model.checkpoints))];
  checkpoints.sort((a, b) => rank(a) - rank(b) || 0);
  position.checkpoint = checkpoints.length - 1;
  $("checkpoint").max = checkpoints.length - 1;
  $("training").hidden = checkpoints.length < 2;
  chosenModels = choice("models", page.models.map((model) => model.name), () => true);
  const numbers = page.models[0].examples.map((_, i) => String(i + 1));
  chosenExamples = choice("examples", numbers, (i) => i === 0);
  listen();
  build();
  document.body.dataset.ready = "yes";
}

main().catch((error) => {
  $("notice")?.replaceChildren(`This page could not be shown: ${error.message}`);
  throw error;
});
