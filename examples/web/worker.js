// Kiln's thread of the page: it draws digits, trains, and reads what the page sends, a slice of time
// after the other, so that messages are answered while it trains.
//
// From the page: {type: 'start', train, test, seed, epochs}, {type: 'train', epochs},
// {type: 'read', id, side, pixels}. To the page: 'ready', 'drawn', 'stepped', 'tested', 'done',
// 'read' and 'failed', each with what there is to show.
'use strict';

const SLICE = 40;    // milliseconds of work between two looks at the messages
const SAMPLES = 48;  // digits that the page shows

let kiln = null;
let options = null;
let stepsLeft = 0;
let steps = 0;
let shown = 0;
let busy = 0;  // milliseconds spent on steps

function checked(result) {
  if (result === -1) throw new Error(kiln.UTF8ToString(kiln._kiln_web_error()));
  return result;
}

function failed(error) {
  postMessage({type: 'failed', message: String(error && error.message || error)});
}

// Runs `slice` until it says that it is done, and lets messages in between.
function repeat(slice) {
  try {
    if (!slice()) setTimeout(repeat, 0, slice);
  } catch (error) {
    failed(error);
  }
}

function drawSlice() {
  const end = performance.now() + SLICE;
  let drawn = 0;
  do {
    drawn = checked(kiln._kiln_web_draw(50));
  } while (drawn < options.train + options.test && performance.now() < end);
  const samples = [];
  for (; shown < Math.min(SAMPLES, drawn); ++shown) {
    const at = kiln._kiln_web_pixels(shown);
    samples.push({pixels: kiln.HEAPU8.slice(at, at + 784), label: checked(kiln._kiln_web_label(shown))});
  }
  const total = options.train + options.test;
  postMessage({type: 'drawn', drawn, total, samples});
  if (drawn < total) return false;
  train(options.epochs);
  return true;
}

function train(epochs) {
  const idle = stepsLeft === 0;
  stepsLeft += epochs * checked(kiln._kiln_web_steps_per_epoch());
  postMessage({type: 'planned', steps: steps + stepsLeft});
  if (idle) repeat(trainSlice);
}

function trainSlice() {
  const perEpoch = kiln._kiln_web_steps_per_epoch();
  const start = performance.now();
  const losses = [];
  let epochEnds = false;
  do {
    losses.push(checked(kiln._kiln_web_step()));
    ++steps;
    --stepsLeft;
    epochEnds = steps % perEpoch === 0;
  } while (!epochEnds && stepsLeft > 0 && performance.now() < start + SLICE);
  busy += performance.now() - start;
  postMessage({type: 'stepped', steps, losses, perSecond: 32 * steps / busy * 1000});
  if (epochEnds) {
    postMessage({type: 'tested', steps, epoch: steps / perEpoch, accuracy: checked(kiln._kiln_web_accuracy())});
  }
  if (stepsLeft > 0) return false;
  const hex = part => (kiln._kiln_web_fingerprint(part) >>> 0).toString(16).padStart(8, '0');
  postMessage({type: 'done', steps, seconds: busy / 1000, fingerprint: hex(1) + hex(0)});
  return true;
}

function read({id, side, pixels}) {
  kiln.HEAPU8.set(pixels, kiln._kiln_web_drawing());
  const digit = checked(kiln._kiln_web_read(side));
  const at = kiln._kiln_web_probabilities() / 4, fitted = kiln._kiln_web_fitted();
  postMessage({type: 'read', id, digit, probabilities: Array.from(kiln.HEAPF32.slice(at, at + 10)),
               fitted: kiln.HEAPU8.slice(fitted, fitted + 784)});
}

onmessage = ({data}) => {
  try {
    if (data.type === 'start') {
      options = data;
      checked(kiln._kiln_web_start(data.train, data.test, data.seed));
      repeat(drawSlice);
    } else if (data.type === 'train') {
      train(data.epochs);
    } else if (data.type === 'read') {
      read(data);
    }
  } catch (error) {
    failed(error);
  }
};

try {
  importScripts('kiln_web.js');
  createKiln().then(module => {
    kiln = module;
    postMessage({type: 'ready', version: kiln.UTF8ToString(kiln._kiln_web_version()), memory: kiln.HEAPU8.length});
  }, failed);
} catch (error) {
  failed(error);
}
