// The page: it shows what the worker says, and sends it what was drawn.
//
// ?train=10000&test=1000&epochs=5&seed=1 in the address are what it begins with.
'use strict';

const COLUMNS = 8, ROWS = 6;
const SIDE = 112;  // of the drawing that the worker gets
const DEFAULTS = {train: 10000, test: 1000, epochs: 5, seed: 1};

const element = id => document.getElementById(id);
const query = new URLSearchParams(location.search);
const settings = {};
for (const [name, usual] of Object.entries(DEFAULTS)) {
  const given = Number.parseInt(query.get(name), 10);
  settings[name] = Number.isSafeInteger(given) && given > 0 && given <= 1e6 ? given : usual;
}

const samples = [];
const losses = [];
const epochs = [];
let planned = 0;
let state = 'loading';
let worker = null;

function setState(to) {
  state = to;
  document.body.dataset.state = to;
}

function problem(sentence) {
  setState('failed');
  element('problem').textContent = sentence;
  element('problem').hidden = false;
  element('drawn').textContent = 'Nothing was drawn.';
  element('train').disabled = true;
}

// One picture of the plot for many messages.
let plotWaits = false;
function plot() {
  if (plotWaits) return;
  plotWaits = true;
  requestAnimationFrame(() => {
    plotWaits = false;
    drawLosses(element('plot'), losses, epochs, planned);
  });
}

function mosaic() {
  const wide = getComputedStyle(element('mosaic')).aspectRatio.replace(/\s/g, '') === '8/4';
  drawMosaic(element('mosaic'), samples, COLUMNS, wide ? 4 : ROWS);
}

// ---- What the worker says

const heard = {
  ready({version}) {
    setState('drawing');
    element('facts').textContent = `This is Kiln ${version}.`;
    worker.postMessage({type: 'start', ...settings});
  },

  drawn({drawn, total, samples: more}) {
    if (more.length > 0) {
      samples.push(...more);
      mosaic();
    }
    element('drawn').textContent = drawn < total ?
        `${drawn.toLocaleString('en')} of ${total.toLocaleString('en')} are drawn.` :
        `${settings.train.toLocaleString('en')} to learn from, and ${settings.test.toLocaleString('en')} others for the test.`;
  },

  planned({steps}) {
    planned = steps;
    setState('training');
    element('train').disabled = true;
    element('train').textContent = 'Training';
  },

  stepped({steps, losses: more, perSecond}) {
    losses.push(...more);
    const perEpoch = Math.ceil(settings.train / 32);
    element('progress').value = steps / planned;
    element('progress-text').textContent =
        `Epoch ${Math.ceil(steps / perEpoch)} of ${Math.round(planned / perEpoch)}, step ${steps.toLocaleString('en')}`;
    element('loss').textContent = more[more.length - 1].toFixed(3);
    element('speed').textContent = Math.round(perSecond).toLocaleString('en');
    plot();
  },

  tested({steps, accuracy}) {
    epochs.push({step: steps, accuracy});
    element('accuracy').textContent = percent(accuracy);
    plot();
    read();
  },

  done({steps, seconds, fingerprint}) {
    element('progress-text').textContent =
        `${steps.toLocaleString('en')} steps in ${seconds.toFixed(1)} seconds.`;
    element('train').textContent = 'Train on';
    element('train').disabled = false;
    document.body.dataset.fingerprint = fingerprint;
    setState('done');
    read();
  },

  read({id, digit, probabilities, fitted}) {
    if (id !== reading) return;  // something else is drawn by now
    element('digit').textContent = digit;
    showDigit(element('seen'), fitted);
    [...element('bars').children].forEach((row, i) => {
      row.classList.toggle('best', i === digit);
      row.querySelector('i').style.width = 100 * probabilities[i] + '%';
      row.querySelector('span').textContent = percent(probabilities[i]);
    });
  },

  failed({message}) {
    problem('Kiln cannot go on here: ' + message);
  },
};

// ---- The pad

const pad = element('pad');
const ink = pad.getContext('2d', {willReadFrequently: true});
let last = null;       // where the pen is; null while it is up
let isEmpty = true;
let chosen = null;     // the digit of the mosaic that lies there
let reading = 0;       // the number of the drawing

function clear() {
  ink.clearRect(0, 0, pad.width, pad.height);
  isEmpty = true;
  chosen = null;
  ++reading;
  element('pad-hint').hidden = false;
  element('digit').textContent = '?';
  showDigit(element('seen'), new Uint8Array(784));
  for (const row of element('bars').children) {
    row.classList.remove('best');
    row.querySelector('i').style.width = 0;
    row.querySelector('span').textContent = '';
  }
}

function place(event) {
  const box = pad.getBoundingClientRect();
  return {x: (event.clientX - box.left) * pad.width / box.width, y: (event.clientY - box.top) * pad.height / box.height};
}

function stroke(to) {
  ink.strokeStyle = '#fff8ec';
  ink.lineWidth = 26;
  ink.lineCap = ink.lineJoin = 'round';
  ink.beginPath();
  ink.moveTo(last.x, last.y);
  ink.lineTo(to.x, to.y);
  ink.stroke();
  last = to;
  isEmpty = false;
  element('pad-hint').hidden = true;
}

// Sends the drawing, once for each picture of the screen.
let sendWaits = false;
function read() {
  if (sendWaits || isEmpty || (state !== 'training' && state !== 'done')) return;
  sendWaits = true;
  requestAnimationFrame(() => {
    sendWaits = false;
    if (isEmpty) return;
    if (chosen) {
      worker.postMessage({type: 'read', id: ++reading, side: 28, pixels: chosen.pixels});
      return;
    }
    const small = document.createElement('canvas');
    small.width = small.height = SIDE;
    const context = small.getContext('2d');
    context.imageSmoothingQuality = 'high';
    context.drawImage(pad, 0, 0, SIDE, SIDE);
    const data = context.getImageData(0, 0, SIDE, SIDE).data;
    const pixels = new Uint8Array(SIDE * SIDE);
    for (let i = 0; i < pixels.length; ++i) pixels[i] = data[4 * i + 3];
    if (!pixels.some(value => value >= 40)) return;
    worker.postMessage({type: 'read', id: ++reading, side: SIDE, pixels});
  });
}

pad.addEventListener('pointerdown', event => {
  if (event.button !== 0) return;
  pad.setPointerCapture(event.pointerId);
  if (chosen) clear();
  last = place(event);
  stroke(last);
  read();
});
pad.addEventListener('pointermove', event => {
  if (last === null) return;
  const all = event.getCoalescedEvents ? event.getCoalescedEvents() : [];
  for (const each of all.length > 0 ? all : [event]) stroke(place(each));
  read();
});
for (const end of ['pointerup', 'pointercancel']) {
  pad.addEventListener(end, () => {
    last = null;
  });
}
element('clear').addEventListener('click', clear);

// A digit of the mosaic, put on the pad.
element('mosaic').addEventListener('click', event => {
  const box = event.target.getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left) * COLUMNS / box.width);
  const row = Math.floor((event.clientY - box.top) * (event.target.height / 28) / box.height);
  const sample = samples[row * COLUMNS + column];
  if (!sample) return;
  clear();
  const picture = document.createElement('canvas');
  picture.width = picture.height = 28;
  const context = picture.getContext('2d');
  const image = context.createImageData(28, 28);
  for (let i = 0; i < 784; ++i) image.data.set([255, 248, 236, sample.pixels[i]], 4 * i);
  context.putImageData(image, 0, 0);
  ink.drawImage(picture, 0, 0, pad.width, pad.height);
  isEmpty = false;
  chosen = sample;
  element('pad-hint').hidden = true;
  element('reading').scrollIntoView({behavior: 'smooth', block: 'nearest'});
  read();
});

element('train').addEventListener('click', () => worker.postMessage({type: 'train', epochs: settings.epochs}));

// ---- Start

for (let digit = 0; digit < 10; ++digit) {
  const row = document.createElement('li');
  row.innerHTML = `${digit}<b><i></i></b><span></span>`;
  element('bars').append(row);
}
clear();
mosaic();
plot();
const redraw = () => {
  mosaic();
  plot();
};
window.addEventListener('resize', redraw);
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);

const missing = whatIsMissing();
if (missing) {
  problem(missing);
} else {
  worker = new Worker('worker.js');
  worker.onmessage = ({data}) => heard[data.type](data);
  worker.onerror = event => problem('Kiln could not be loaded: ' + (event.message || 'a file of the page is missing') + '.');
}
