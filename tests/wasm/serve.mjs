// A web server for one folder, on a free port of this machine. It sends none of the headers that
// isolate a page: whoever puts the page on a server need not either.
import {createReadStream, statSync} from 'node:fs';
import {createServer} from 'node:http';
import {extname, join, normalize} from 'node:path';

const TYPES = {'.html': 'text/html; charset=utf-8', '.css': 'text/css', '.js': 'text/javascript',
  '.wasm': 'application/wasm'};

// `without`: a file that it says is not there.
export async function serve(folder, {without = ''} = {}) {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    const name = normalize(path === '/' ? 'index.html' : path.slice(1));
    const file = join(folder, name);
    let size = -1;
    try {
      if (!name.startsWith('..') && name !== without) size = statSync(file).size;
    } catch {
      // it is not there
    }
    if (size < 0) {
      response.writeHead(404).end('not here');
      return;
    }
    response.writeHead(200, {'Content-Type': TYPES[extname(file)] ?? 'application/octet-stream', 'Content-Length': size});
    createReadStream(file).pipe(response);
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  return {address: `http://127.0.0.1:${server.address().port}`, close: () => server.close()};
}
