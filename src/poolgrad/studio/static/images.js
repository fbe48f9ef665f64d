// Pictures of any kind that the browser can read, as the 8-bit PNG that the server reads.

const FITS = 256; // pixels a side that stay fluid with every explanation

/** @param {File} file */
export function isImage(file) {
  return file.type.startsWith('image/') && !/svg/.test(file.type);
}

/** Return true if the server reads the file as it is: 8 bits, grey or RGB, not interlaced. @param {Uint8Array} head of the file */
function plain(head) {
  const signature = [137, 80, 78, 71, 13, 10, 26, 10];
  return signature.every((byte, i) => head[i] === byte) && head[24] === 8 && (head[25] === 0 || head[25] === 2) && head[28] === 0;
}

/**
 * Return a file that the server reads, or null if the person changed their mind; ask whether to shrink a large picture.
 * @param {File} file @param {(text: string, answers: string[]) => Promise<string|null>} ask @returns {Promise<File|null>}
 */
export async function readable(file, ask) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const image = await createImageBitmap(file, { premultiplyAlpha: 'none', colorSpaceConversion: 'none' }).catch(() => null);
  if (!image) return file; // the server says why it is none
  const ratio = FITS / Math.max(image.width, image.height);
  let [width, height] = [image.width, image.height];
  if (ratio < 1) {
    const small = [Math.max(Math.round(width * ratio), 1), Math.max(Math.round(height * ratio), 1)];
    const shrink = `Shrink to ${small.join(' x ')}`;
    const said = await ask(`${file.name} has ${width} x ${height} pixels. A smaller picture is easier to look into.`, [shrink, 'Keep its size']);
    if (!said) return null;
    if (said === shrink) [width, height] = small;
  }
  if (width === image.width && plain(bytes)) return file;
  const name = file.name.replace(/\.\w+$/, '') + '.png';
  return new File([await encode(pixelsOf(image, width, height))], name, { type: 'image/png' });
}

/** The pixels on white: a picture has no transparent cells. */
function pixelsOf(image, width, height) {
  const canvas = new OffscreenCanvas(width, height);
  const pen = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext('2d'));
  pen.fillStyle = '#fff';
  pen.fillRect(0, 0, width, height);
  pen.imageSmoothingQuality = 'high';
  pen.drawImage(image, 0, 0, width, height);
  return pen.getImageData(0, 0, width, height);
}

/** A PNG file, 8-bit RGB, or grey if all pixels are. @param {ImageData} image */
async function encode({ data, width, height }) {
  let grey = true;
  for (let i = 0; i < data.length && grey; i += 4) grey = data[i] === data[i + 1] && data[i] === data[i + 2];
  const channels = grey ? 1 : 3;
  const lines = new Uint8Array(height * (1 + width * channels));
  for (let y = 0, k = 0, i = 0; y < height; y++) {
    k++; // filter 0
    for (let x = 0; x < width; x++, i += 4) for (let c = 0; c < channels; c++) lines[k++] = data[i + c];
  }
  const packed = await new Response(new Blob([lines]).stream().pipeThrough(new CompressionStream('deflate'))).arrayBuffer();
  const head = new DataView(new ArrayBuffer(13));
  head.setUint32(0, width);
  head.setUint32(4, height);
  head.setUint8(8, 8);
  head.setUint8(9, grey ? 0 : 2);
  return new Blob([new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10]), chunk('IHDR', new Uint8Array(head.buffer)), chunk('IDAT', new Uint8Array(packed)), chunk('IEND', new Uint8Array())]);
}

/** @param {string} name @param {Uint8Array} content */
function chunk(name, content) {
  const made = new Uint8Array(12 + content.length);
  const view = new DataView(made.buffer);
  view.setUint32(0, content.length);
  for (let i = 0; i < 4; i++) made[4 + i] = name.charCodeAt(i);
  made.set(content, 8);
  view.setUint32(8 + content.length, checksum(made.subarray(4, 8 + content.length)));
  return made;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => { for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1; return n; });

/** The CRC-32 of bytes. @param {Uint8Array} bytes */
function checksum(bytes) {
  let c = ~0;
  for (const byte of bytes) c = TABLE[(c ^ byte) & 255] ^ (c >>> 8);
  return ~c >>> 0;
}
