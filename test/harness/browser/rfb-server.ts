/** An in-memory screen server, as far as our client needs one: a frame of one colour, changed by the test. */
import type { Wire } from "../../../daemon/domain/screen/rfb/client.ts";

interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Fields of several sizes, one after the other, as RFB writes them. */
export function packed(...fields: (readonly ["u8" | "u16" | "u32" | "s32", number] | Uint8Array | string)[]): Buffer {
  return Buffer.concat(
    fields.map((field) => {
      if (typeof field === "string") return Buffer.from(field, "latin1");
      if (field instanceof Uint8Array) return Buffer.from(field);
      const [kind, value] = field;
      const bytes = Buffer.alloc({ u8: 1, u16: 2, u32: 4, s32: 4 }[kind]);
      if (kind === "u8") bytes.writeUInt8(value);
      else if (kind === "u16") bytes.writeUInt16BE(value);
      else if (kind === "u32") bytes.writeUInt32BE(value);
      else bytes.writeInt32BE(value);
      return bytes;
    }),
  );
}

export function greeting(width: number, height: number, name = "a screen"): Buffer {
  const format = new Uint8Array(16);
  const hello = packed("RFB 003.008\n", ["u8", 1], ["u8", 1], ["u32", 0]);
  return packed(hello, ["u16", width], ["u16", height], format, ["u32", name.length], name);
}

export function rectangle({ x, y, width, height }: Area, encoding: number, bytes: Uint8Array = new Uint8Array(0)) {
  return packed(["u16", x], ["u16", y], ["u16", width], ["u16", height], ["s32", encoding], bytes);
}

export function update(...rectangles: Uint8Array[]): Buffer {
  return packed(["u8", 0], ["u8", 0], ["u16", rectangles.length], ...rectangles);
}

/** All bytes of a rectangle's pixels are `shade`. */
export function shaded(area: Area, shade: number): Buffer {
  return rectangle(area, 0, new Uint8Array(area.width * area.height * 4).fill(shade));
}

/** A client's request for another screen size; each of `monitors` monitors shows all of it. */
export function sizeWish(width: number, height: number, monitors = 1): Buffer {
  const monitor = (id: number) =>
    packed(["u32", id], ["u16", 0], ["u16", 0], ["u16", width], ["u16", height], ["u32", 0]);
  const all = Array.from({ length: monitors }, (_, id) => monitor(id));
  return packed(["u8", 251], ["u8", 0], ["u16", width], ["u16", height], ["u8", monitors], ["u8", 0], ...all);
}

/** Lengths by the type of a client's message; messages of encodings and clipboards contain their lengths. */
const LENGTHS: Readonly<Record<number, number>> = { 0: 20, 3: 10, 4: 8, 5: 6 };

function lengthOf(type: number, message: Buffer): number | undefined {
  const known = { 2: 4, 6: 8 }[type] ?? 0;
  if (message.byteLength < known) return known;
  if (type === 2) return 4 + 4 * message.readUInt16BE(2);
  if (type === 6) return 8 + Math.abs(message.readInt32BE(4));
  return LENGTHS[type];
}

export class RfbServer {
  width: number;
  height: number;
  shade = 10;
  readonly keys: [keysym: number, isDown: boolean][] = [];
  readonly pointers: [x: number, y: number, buttons: number][] = [];
  asked = 0;
  closed = false;
  /** Nothing is answered any more. */
  isDeaf = false;
  readonly #queue: Uint8Array[] = [];
  readonly #gone = Promise.withResolvers<void>();
  #wake = Promise.withResolvers<void>();
  #said = 0;
  #buffer: Buffer = Buffer.alloc(0);
  /** An incremental request waits for a change. */
  #waits = false;
  #changed = false;

  constructor(width = 64, height = 40) {
    this.width = width;
    this.height = height;
    this.send(greeting(width, height));
  }

  get wire(): Wire {
    return {
      output: this.#output(),
      write: async (bytes) => this.#take(bytes),
      close: () => {
        this.closed = true;
        this.#gone.resolve();
        this.#wake.resolve();
      },
    };
  }

  /** Resolves once the connection is closed. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  /** Number of its messages that no client has read. */
  get unsent(): number {
    return this.#queue.length;
  }

  send(bytes: Uint8Array): void {
    this.#queue.push(bytes);
    this.#wake.resolve();
  }

  /** The screen has another colour. */
  paint(shade: number): void {
    this.shade = shade;
    this.#changed = true;
    if (this.#waits) this.#sendAll();
  }

  resize(width: number, height: number): void {
    [this.width, this.height] = [width, height];
    this.#waits = false;
    this.send(update(rectangle({ x: 0, y: 0, width, height }, -223)));
  }

  #sendAll(): void {
    this.#waits = false;
    this.#changed = false;
    this.send(update(shaded({ x: 0, y: 0, width: this.width, height: this.height }, this.shade)));
  }

  async *#output(): AsyncGenerator<Uint8Array> {
    while (!this.closed) {
      const bytes = this.#queue.shift();
      if (bytes) {
        yield bytes;
        continue;
      }
      this.#wake = Promise.withResolvers();
      await this.#wake.promise;
    }
  }

  #take(bytes: Uint8Array): void {
    this.#buffer = Buffer.concat([this.#buffer, bytes]);
    // Version, kind of security, and that others may stay.
    for (; this.#said < 14 && this.#buffer.byteLength > 0; this.#said++) this.#buffer = this.#buffer.subarray(1);
    for (;;) {
      const [type] = this.#buffer;
      if (type === undefined) return;
      const length = lengthOf(type, this.#buffer);
      if (length === undefined) throw new Error(`no client says ${type}`);
      if (this.#buffer.byteLength < length) return;
      this.#hear(type, this.#buffer.subarray(0, length));
      this.#buffer = this.#buffer.subarray(length);
    }
  }

  #hear(type: number, message: Buffer): void {
    if (type === 4) this.keys.push([message.readUInt32BE(4), message[1] === 1]);
    if (type === 5) this.pointers.push([message.readUInt16BE(2), message.readUInt16BE(4), message[1] ?? 0]);
    if (type !== 3 || this.isDeaf) return;
    this.asked++;
    const [x, y, width, height] = [2, 4, 6, 8].map((at) => message.readUInt16BE(at)) as [
      number,
      number,
      number,
      number,
    ];
    if (message[1] === 0) this.send(update(shaded({ x, y, width, height }, this.shade)));
    else if (this.#changed) this.#sendAll();
    else this.#waits = true;
  }
}
