// A headless Chromium, spoken to over two pipes in the Chrome DevTools Protocol: what the test of the
// page needs of it, without a package.
import {spawn} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage',
  '--hide-scrollbars', '--remote-debugging-pipe'];

export class Browser {
  #process;
  #folder;
  #next = 1;
  #waiting = new Map();  // by number: {resolve, reject}
  #listeners = new Map();  // by session
  #rest = '';

  static async launch(program) {
    const browser = new Browser();
    browser.#folder = mkdtempSync(join(tmpdir(), 'kiln-browser-'));
    browser.#process = spawn(program, [...FLAGS, `--user-data-dir=${browser.#folder}`, 'about:blank'],
                             {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});
    browser.#process.on('exit', (code, signal) => browser.#fail(`the browser ended (${signal ?? code})`));
    browser.#process.on('error', error => browser.#fail(`the browser does not start: ${error.message}`));
    for (const pipe of [3, 4]) browser.#process.stdio[pipe].on('error', () => {});
    browser.#process.stdio[4].setEncoding('utf8').on('data', text => browser.#take(text));
    browser.version = (await browser.send('Browser.getVersion')).product;
    return browser;
  }

  #fail(why) {
    for (const {reject} of this.#waiting.values()) reject(new Error(why));
    this.#waiting.clear();
  }

  // Messages are JSON with a zero byte behind each.
  #take(text) {
    const parts = (this.#rest + text).split('\0');
    this.#rest = parts.pop();
    for (const part of parts) {
      const {id, sessionId, method, params, result, error} = JSON.parse(part);
      if (id === undefined) {
        this.#listeners.get(sessionId)?.(method, params);
        continue;
      }
      const {resolve, reject} = this.#waiting.get(id) ?? {};
      this.#waiting.delete(id);
      if (error) reject?.(new Error(`${error.message} ${error.data ?? ''}`));
      else resolve?.(result);
    }
  }

  send(method, params = {}, sessionId = undefined) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, {resolve, reject});
      this.#process.stdio[3].write(JSON.stringify({id, method, params, sessionId}) + '\0');
    });
  }

  // A tab of that size. `before` is JavaScript that runs before any of the page's.
  async open(url, {width = 1280, height = 900, scale = 1, phone = false, dark = false, before = ''} = {}) {
    const {targetId} = await this.send('Target.createTarget', {url: 'about:blank'});
    const {sessionId} = await this.send('Target.attachToTarget', {targetId, flatten: true});
    const page = new Page(this, targetId, sessionId);
    this.#listeners.set(sessionId, (method, params) => page.hear(method, params));
    await page.send('Page.enable');
    await page.send('Runtime.enable');
    await page.send('Log.enable');
    await page.send('Emulation.setDeviceMetricsOverride', {width, height, deviceScaleFactor: scale, mobile: phone});
    await page.send('Emulation.setEmulatedMedia',
                    {features: [{name: 'prefers-color-scheme', value: dark ? 'dark' : 'light'}]});
    if (before) await page.send('Page.addScriptToEvaluateOnNewDocument', {source: before});
    await page.send('Page.navigate', {url});
    return page;
  }

  async close() {
    const ended = new Promise(resolve => this.#process.once('exit', resolve));
    this.send('Browser.close').catch(() => {});
    const late = setTimeout(() => this.#process.kill('SIGKILL'), 5000);
    await ended;
    clearTimeout(late);
    rmSync(this.#folder, {recursive: true, force: true, maxRetries: 5});
  }
}

class Page {
  complaints = [];  // exceptions that nobody caught, and errors of the console

  constructor(browser, target, session) {
    this.browser = browser;
    this.target = target;
    this.session = session;
  }

  send(method, params) {
    return this.browser.send(method, params, this.session);
  }

  hear(method, params) {
    if (method === 'Runtime.exceptionThrown') {
      this.complaints.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    } else if (method === 'Log.entryAdded' && params.entry.level === 'error') {
      this.complaints.push(`${params.entry.text} ${params.entry.url ?? ''}`);
    }
  }

  // The value of an expression in the page.
  async value(expression) {
    const {result, exceptionDetails} =
        await this.send('Runtime.evaluate', {expression, returnByValue: true, awaitPromise: true});
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  // Waits until an expression is true.
  async until(expression, seconds) {
    const end = Date.now() + 1000 * seconds;
    while (!(await this.value(`Boolean(${expression})`).catch(() => false))) {
      if (Date.now() > end) {
        const said = await this.value('document.body ? document.body.innerText : ""').catch(() => '');
        throw new Error(`not within ${seconds} s: ${expression}\n${this.complaints.join('\n')}\nthe page says:\n${said}`);
      }
      await new Promise(resolve => setTimeout(resolve, 50));
    }
  }

  // Presses the mouse at the first of some points of the window, moves through the others, lets go.
  async drag(points) {
    const mouse = (type, {x, y}, buttons) =>
        this.send('Input.dispatchMouseEvent', {type, x, y, button: 'left', buttons, clickCount: 1});
    await mouse('mousePressed', points[0], 1);
    for (const point of points.slice(1)) await mouse('mouseMoved', point, 1);
    await mouse('mouseReleased', points.at(-1), 0);
  }

  // Where an element is in the window, scrolled into it.
  box(selector) {
    return this.value(`(() => {
      const element = document.querySelector(${JSON.stringify(selector)});
      element.scrollIntoView({block: 'center', behavior: 'instant'});
      const {x, y, width, height} = element.getBoundingClientRect();
      return {x, y, width, height};
    })()`);
  }

  async click(selector, across = 0.5, down = 0.5) {
    const {x, y, width, height} = await this.box(selector);
    await this.drag([{x: x + across * width, y: y + down * height}]);
  }

  // The whole page as a PNG.
  async screenshot() {
    const {cssContentSize: {width, height}} = await this.send('Page.getLayoutMetrics');
    const {data} = await this.send('Page.captureScreenshot', {
      format: 'png', captureBeyondViewport: true, clip: {x: 0, y: 0, width, height, scale: 1}});
    return Buffer.from(data, 'base64');
  }

  close() {
    return this.browser.send('Target.closeTarget', {targetId: this.target});
  }
}
