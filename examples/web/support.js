// Says what this browser lacks for the page, in a sentence; an empty string where it lacks nothing.
'use strict';

// The smallest modules with a vector, and with an exception that is caught.
const VECTORS = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];
const EXCEPTIONS = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 8, 1, 6, 0, 6, 64, 25, 11, 11];

function whatIsMissing(scope = globalThis) {
  if (scope.location && scope.location.protocol === 'file:') {
    return 'This page works when a web server hands it out. In its folder, run "python3 -m http.server 8000", ' +
        'and open http://localhost:8000.';
  }
  if (typeof scope.WebAssembly !== 'object') {
    return 'This page needs WebAssembly, which this browser does not have or has switched off.';
  }
  if (typeof scope.Worker !== 'function') return 'This page needs web workers, which this browser does not have.';
  if (!scope.WebAssembly.validate(new Uint8Array(VECTORS))) {
    return 'This page needs the vector instructions of WebAssembly (SIMD). Chrome 91, Firefox 89, Safari 16.4 and newer have them.';
  }
  if (!scope.WebAssembly.validate(new Uint8Array(EXCEPTIONS))) {
    return 'This page needs the exceptions of WebAssembly. Chrome 95, Firefox 100, Safari 15.2 and newer have them.';
  }
  return '';
}

if (typeof module === 'object') module.exports = {whatIsMissing, VECTORS, EXCEPTIONS};
