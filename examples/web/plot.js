// Pictures on the page: the loss, the digits that were drawn, one digit.
'use strict';

// A canvas's context, as sharp as the screen, and its size in the page's pixels.
function sharp(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  return {context, width, height};
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Losses one by one, their moving mean, and marks where an epoch ended: {step, accuracy}.
function drawLosses(canvas, losses, epochs, expected) {
  const {context, width, height} = sharp(canvas);
  const left = 34, right = 12, top = 26, bottom = 24;
  const most = 2.5;
  const steps = Math.max(expected, losses.length, 1);
  const x = step => left + (width - left - right) * step / steps;
  const y = loss => top + (height - top - bottom) * (1 - Math.min(loss, most) / most);
  const soft = colour('--soft'), line = colour('--line');
  context.font = '12px system-ui, "DejaVu Sans", sans-serif';
  context.lineWidth = 1;

  context.fillStyle = soft;
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  for (let loss = 0; loss <= most; loss += 0.5) {
    context.strokeStyle = line;
    context.beginPath();
    context.moveTo(left, Math.round(y(loss)) + 0.5);
    context.lineTo(width - right, Math.round(y(loss)) + 0.5);
    context.stroke();
    context.fillText(loss.toFixed(1), left - 8, y(loss));
  }
  context.textAlign = 'left';
  context.fillText('loss', 2, 9);
  context.textAlign = 'right';
  context.textBaseline = 'bottom';
  if (expected > 0) context.fillText(steps.toLocaleString('en') + ' steps', width - right, height - 3);

  // The marks of epochs, as far as their texts have room, the last one first.
  let free = width;
  context.textBaseline = 'middle';
  for (const {step, accuracy} of [...epochs].reverse()) {
    context.strokeStyle = colour('--fire');
    context.setLineDash([2, 3]);
    context.beginPath();
    context.moveTo(x(step), top - 6);
    context.lineTo(x(step), height - bottom);
    context.stroke();
    context.setLineDash([]);
    const text = percent(accuracy), half = context.measureText(text).width / 2;
    const at = Math.min(x(step), width - right - half);
    if (at + half > free || at - half < left) continue;
    context.textAlign = 'center';
    context.fillStyle = soft;
    context.fillText(text, at, 9);
    free = at - half - 6;
  }

  if (losses.length === 0) return;
  const curve = (values, style, thickness) => {
    context.strokeStyle = style;
    context.lineWidth = thickness;
    context.lineJoin = 'round';
    context.beginPath();
    values.forEach((value, i) => context.lineTo(x(i + 1), y(value)));
    context.stroke();
  };
  curve(losses, colour('--brick-soft'), 1);
  // The first values weigh more, so that the mean does not begin at 0.
  let sum = 0, weight = 0;
  const mean = losses.map(loss => {
    sum = 0.9 * sum + loss;
    weight = 0.9 * weight + 1;
    return sum / weight;
  });
  curve(mean, colour('--brick'), 2.5);
}

function percent(share) {
  return (100 * share).toFixed(1) + ' %';
}

// One digit u8 [28 * 28] as a picture of a canvas of 28 x 28 pixels, light on dark.
function showDigit(canvas, pixels) {
  canvas.width = canvas.height = 28;
  const context = canvas.getContext('2d');
  const image = context.createImageData(28, 28);
  paint(image, pixels, 0, 0);
  context.putImageData(image, 0, 0);
}

// Puts a digit into a picture: from the night's colour to that of chalk.
function paint(image, pixels, left, top) {
  for (let i = 0; i < 784; ++i) {
    const at = 4 * ((top + (i / 28 | 0)) * image.width + left + i % 28);
    const part = pixels[i] / 255;
    image.data[at] = 29 + 226 * part;
    image.data[at + 1] = 24 + 224 * part;
    image.data[at + 2] = 21 + 215 * part;
    image.data[at + 3] = 255;
  }
}

// As many of the digits as a canvas of these rows and columns has places for.
function drawMosaic(canvas, digits, columns, rows) {
  canvas.width = columns * 28;
  canvas.height = rows * 28;
  const context = canvas.getContext('2d');
  const image = context.createImageData(canvas.width, canvas.height);
  for (let i = 0; i < columns * rows; ++i) {
    const pixels = digits[i] ? digits[i].pixels : new Uint8Array(784);
    paint(image, pixels, i % columns * 28, (i / columns | 0) * 28);
  }
  context.putImageData(image, 0, 0);
}
