// usage: node tests/wasm/page.mjs FOLDER [--browser PROGRAM] [--pictures FOLDER]
//
// Opens the page of FOLDER (build/wasm/web) in a headless Chromium, waits until it has trained, reads
// the accuracy from the page, draws digits with the mouse and reads what the page makes of them.
// --pictures keeps screenshots.
import assert from 'node:assert/strict';
import {mkdirSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join, resolve} from 'node:path';
import {parseArgs} from 'node:util';

import {Browser} from './browser.mjs';
import {serve} from './serve.mjs';

const LEAST = 95;  // percent of the test digits

const {values: options, positionals: [folder]} = parseArgs({
  allowPositionals: true,
  options: {browser: {type: 'string', default: '/usr/bin/chromium'}, pictures: {type: 'string', default: ''}},
});
const require = createRequire(import.meta.url);

async function picture(page, name) {
  if (!options.pictures) return;
  mkdirSync(options.pictures, {recursive: true});
  writeFileSync(join(options.pictures, name + '.png'), await page.screenshot());
}

// The same training without a page: its weights must have the same bits.
async function trainInNode({train, test, epochs, seed}) {
  const kiln = await require(resolve(folder, 'kiln_web.js'))();
  assert.notEqual(kiln._kiln_web_start(train, test, seed), -1);
  while (kiln._kiln_web_draw(1000) < train + test) { /* more */ }
  const start = performance.now();
  for (let i = epochs * kiln._kiln_web_steps_per_epoch(); i > 0; --i) assert.notEqual(kiln._kiln_web_step(), -1);
  const seconds = (performance.now() - start) / 1000;
  const hex = part => (kiln._kiln_web_fingerprint(part) >>> 0).toString(16).padStart(8, '0');
  return {fingerprint: hex(1) + hex(0), accuracy: kiln._kiln_web_accuracy(), seconds};
}

const text = (page, id) => page.value(`document.getElementById('${id}').textContent`);

// What a stroke through points of the pad (0 to 1) is read as.
async function draw(page, ...strokes) {
  await page.click('#clear');
  assert.equal(await text(page, 'digit'), '?');
  const {x, y, width, height} = await page.box('#pad');
  for (const stroke of strokes) {
    await page.drag(stroke.map(([across, down]) => ({x: x + across * width, y: y + down * height})));
  }
  await page.until(`document.getElementById('digit').textContent !== '?'`, 10);
  // The last answer is of the whole drawing.
  await new Promise(resolve => setTimeout(resolve, 300));
  return Number(await text(page, 'digit'));
}

const line = (...corners) => corners.flatMap(([x0, y0], i) => {
  if (i + 1 === corners.length) return [[x0, y0]];
  const [x1, y1] = corners[i + 1];
  return Array.from({length: 8}, (_, k) => [x0 + (x1 - x0) * k / 8, y0 + (y1 - y0) * k / 8]);
});
const ring = Array.from({length: 33}, (_, k) =>
    [0.5 + 0.22 * Math.sin(k * Math.PI / 16), 0.5 - 0.32 * Math.cos(k * Math.PI / 16)]);

async function theWholePage(browser, address) {
  const start = Date.now();
  const page = await browser.open(address);
  await page.until(`document.body.dataset.state !== 'loading'`, 60);
  const loaded = (Date.now() - start) / 1000;
  await page.until(`document.body.dataset.state === 'training' && losses.length > 50`, 120);
  await picture(page, 'training');
  await page.until(`document.body.dataset.state === 'done'`, 300);
  const seconds = (Date.now() - start) / 1000;

  const accuracy = Number.parseFloat(await text(page, 'accuracy'));
  console.log(`page: ${accuracy} % of the test digits read rightly; ${await text(page, 'progress-text')} ` +
              `${await text(page, 'speed')} digits a second; loaded after ${loaded.toFixed(1)} s, all done after ${seconds.toFixed(1)} s`);
  assert.ok(accuracy >= LEAST, `the page shows ${accuracy} %; expected ${LEAST} % or more`);
  assert.equal(await page.value('crossOriginIsolated'), false);
  assert.ok(await page.value('losses.slice(-50).reduce((a, b) => a + b) < 0.3 * losses.slice(0, 50).reduce((a, b) => a + b)'),
            'the losses that the page plots do not fall');

  const fingerprint = await page.value('document.body.dataset.fingerprint');
  const node = await trainInNode(await page.value('settings'));
  console.log(`node: the same training in ${node.seconds.toFixed(1)} s; weights ${node.fingerprint}, in the page ${fingerprint}`);
  assert.equal(fingerprint, node.fingerprint, 'the browser and Node have different weights');
  assert.equal(accuracy.toFixed(1), (100 * node.accuracy).toFixed(1));

  assert.equal(await draw(page, line([0.5, 0.15], [0.48, 0.85])), 1);
  assert.equal(await draw(page, ring), 0);
  assert.equal(await draw(page, line([0.28, 0.2], [0.72, 0.2], [0.45, 0.85])), 7);
  await picture(page, 'read');
  const bars = await page.value(`[...document.querySelectorAll('#bars span')].map(bar => parseFloat(bar.textContent))`);
  assert.ok(Math.abs(bars.reduce((a, b) => a + b) - 100) < 1, `the probabilities are ${bars}`);
  assert.equal(bars.indexOf(Math.max(...bars)), 7);

  // Digits of the mosaic, which the network has learnt from.
  let right = 0;
  const tried = 12;
  for (let i = 0; i < tried; ++i) {
    await page.click('#clear');
    const rows = await page.value(`document.getElementById('mosaic').height / 28`);
    await page.click('#mosaic', (i % 8 + 0.5) / 8, ((i / 8 | 0) + 0.5) / rows);
    await page.until(`document.getElementById('digit').textContent !== '?'`, 10);
    right += Number(await text(page, 'digit')) === await page.value(`samples[${i}].label`);
  }
  console.log(`page: ${right} of ${tried} digits of its mosaic read rightly`);
  assert.ok(right >= tried - 2);

  // It reads while it trains on.
  const steps = await page.value('losses.length');
  await page.click('#train');
  await page.until(`document.body.dataset.state === 'training'`, 10);
  assert.equal(await draw(page, line([0.5, 0.15], [0.48, 0.85])), 1);
  await page.until(`document.body.dataset.state === 'done'`, 300);
  assert.equal(await page.value('losses.length'), 2 * steps);
  assert.ok(Number.parseFloat(await text(page, 'accuracy')) >= LEAST);
  assert.deepEqual(page.complaints, []);
  assert.equal(await page.value(`document.getElementById('problem').hidden`), true);
  await page.close();
}

async function onAPhone(browser, address) {
  for (const dark of [false, true]) {
    const page = await browser.open(address + '/?train=2000&epochs=2', {width: 390, height: 844, scale: 2, phone: true, dark});
    await page.until(`document.body.dataset.state === 'done'`, 120);
    assert.ok(await page.value('document.documentElement.scrollWidth <= window.innerWidth'), 'the page is wider than a phone');
    await draw(page, line([0.28, 0.2], [0.72, 0.2], [0.45, 0.85]));
    await picture(page, dark ? 'phone-dark' : 'phone');
    assert.deepEqual(page.complaints, []);
    await page.close();
  }
}

// What it says where something is missing.
async function sentences(browser, address) {
  const cases = [
    ['delete globalThis.WebAssembly', /needs WebAssembly/],
    ['delete globalThis.Worker', /web workers/],
    ['WebAssembly.validate = () => false', /\(SIMD\)/],
    // 123 is the type of vectors.
    ['const old = WebAssembly.validate; WebAssembly.validate = b => b.includes(123) && old(b)', /exceptions of WebAssembly/],
  ];
  for (const [before, sentence] of cases) {
    const page = await browser.open(address, {before});
    await page.until(`document.body && document.body.dataset.state === 'failed'`, 20);
    assert.match(await text(page, 'problem'), sentence);
    assert.equal(await page.value(`document.getElementById('problem').hidden`), false);
    if (sentence.source.includes('SIMD')) await picture(page, 'problem');
    await page.close();
  }
  for (const without of ['kiln_web.wasm', 'kiln_web.js']) {
    const server = await serve(folder, {without});
    const page = await browser.open(server.address);
    await page.until(`document.body.dataset.state === 'failed'`, 60);
    assert.match(await text(page, 'problem'), /Kiln (cannot go on|could not be loaded)/);
    await page.close();
    server.close();
  }
  console.log(`page: it says what is missing in ${cases.length + 2} cases`);
}

const server = await serve(folder);
const browser = await Browser.launch(options.browser);
console.log(`page: ${browser.version}`);
try {
  await theWholePage(browser, server.address);
  await onAPhone(browser, server.address);
  await sentences(browser, server.address);
} finally {
  await browser.close();
  server.close();
}
console.log('page: all is right');
