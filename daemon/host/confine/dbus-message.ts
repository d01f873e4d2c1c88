/** D-Bus wire format, as in its specification, for the messages that we send (method calls), and the relevant part of replies. */

export interface Variant {
  type: string;
  value: Value;
}

/** Value that a signature describes: strings, numbers, booleans, variants; arrays and structs as lists. */
export type Value = string | number | boolean | Variant | readonly Value[];

export interface MethodCall {
  destination: string;
  path: string;
  interface: string;
  member: string;
  /** Types of `body`, one for each value. */
  signature: string;
  body: readonly Value[];
}

/** Reply to the call of that serial, with the error if the call was refused. */
export interface DbusReply {
  serial: number;
  error: { name: string; message: string } | null;
}

const LITTLE_ENDIAN = "l".charCodeAt(0);
const VERSION = 1;
const METHOD_CALL = 1;
const METHOD_RETURN = 2;
const ERROR = 3;
const FIELDS = {
  path: 1,
  interface: 2,
  member: 3,
  error_name: 4,
  reply_serial: 5,
  destination: 6,
  signature: 8,
} as const;
/** Bytes of a message before its header fields. */
const FIXED_BYTES = 16;
/** Replies of systemd to us are a few lines at most. */
const MAX_BYTES = 1024 * 1024;
const ALIGNMENT: Record<string, number> = { y: 1, g: 1, v: 1, b: 4, u: 4, s: 4, o: 4, a: 4, t: 8, "(": 8 };

/** The bytes of a call. Pure. */
export function encodeCall(serial: number, call: MethodCall): Uint8Array {
  const body: number[] = [];
  putAll(body, call.signature, call.body);
  const named = (["path", "member", "interface", "destination"] as const).map((name) => [
    FIELDS[name],
    { type: name === "path" ? "o" : "s", value: call[name] },
  ]);
  const signed = call.signature === "" ? [] : [[FIELDS.signature, { type: "g", value: call.signature }]];
  const message: number[] = [];
  const header = [LITTLE_ENDIAN, METHOD_CALL, 0, VERSION, body.length, serial, [...named, ...signed]];
  putAll(message, "yyyyuua(yv)", header);
  align(message, 8);
  return Uint8Array.from([...message, ...body]);
}

/** Length in bytes of the message that starts here; null until enough of it has arrived. Throws if it is not a message that we accept. */
export function lengthOf(bytes: Uint8Array): number | null {
  if (bytes.length < FIXED_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  if (view.getUint8(0) !== LITTLE_ENDIAN) throw new Error("malformed D-Bus message");
  const length = padded(FIXED_BYTES + view.getUint32(12, true), 8) + view.getUint32(4, true);
  if (length > MAX_BYTES) throw new Error(`a D-Bus message has ${length} bytes`);
  return length;
}

/** Reads a whole message as a reply; null if it is not a reply. Pure. */
export function readAnswer(bytes: Uint8Array): DbusReply | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const type = view.getUint8(1);
  if (type !== METHOD_RETURN && type !== ERROR) return null;
  const end = FIXED_BYTES + view.getUint32(12, true);
  const fields = new Map<number, string | number>();
  for (let at = FIXED_BYTES; at < end; ) {
    at = padded(at, 8);
    const field = view.getUint8(at);
    // A variant: the length of its signature, which is one character in all existing fields, and a zero byte.
    const kind = String.fromCharCode(view.getUint8(at + 2));
    const value = readValue(view, kind, at + 4);
    fields.set(field, value.value);
    at = value.end;
  }
  const serial = Number(fields.get(FIELDS.reply_serial));
  if (type === METHOD_RETURN) return { serial, error: null };
  const says = String(fields.get(FIELDS.signature) ?? "").startsWith("s");
  const message = says ? String(readValue(view, "s", padded(end, 8)).value) : "";
  return { serial, error: { name: String(fields.get(FIELDS.error_name)), message } };
}

function readValue(view: DataView, type: string, from: number): { value: string | number; end: number } {
  const at = padded(from, ALIGNMENT[type] ?? 1);
  if (type === "u") return { value: view.getUint32(at, true), end: at + 4 };
  if (type !== "s" && type !== "o" && type !== "g") throw new Error(`a D-Bus field has the unsupported type ${type}`);
  const [begin, length] = type === "g" ? [at + 1, view.getUint8(at)] : [at + 4, view.getUint32(at, true)];
  const text = new Uint8Array(view.buffer, view.byteOffset + begin, length);
  return { value: new TextDecoder().decode(text), end: begin + length + 1 };
}

function putAll(to: number[], signature: string, values: readonly Value[]): void {
  for (const [index, type] of typesOf(signature).entries()) put(to, type, values[index] as Value);
}

function put(to: number[], type: string, value: Value): void {
  const [kind = ""] = type;
  align(to, ALIGNMENT[kind] ?? 1);
  switch (kind) {
    case "y":
      to.push(Number(value));
      return;
    case "b":
    case "u":
      putNumber(to, Number(value), 4);
      return;
    case "t":
      putNumber(to, Number(value), 8);
      return;
    case "s":
    case "o":
    case "g": {
      const text = new TextEncoder().encode(String(value));
      putNumber(to, text.length, kind === "g" ? 1 : 4);
      to.push(...text, 0);
      return;
    }
    case "v": {
      const { type: inner, value: own } = value as Variant;
      put(to, "g", inner);
      put(to, inner, own);
      return;
    }
    case "(":
      putAll(to, type.slice(1, -1), value as readonly Value[]);
      return;
    case "a":
      putArray(to, type.slice(1), value as readonly Value[]);
      return;
    default:
      throw new Error(`unsupported D-Bus type ${type}`);
  }
}

/** The length comes first; it includes neither itself nor the padding that aligns the first element. */
function putArray(to: number[], type: string, values: readonly Value[]): void {
  const lengthAt = to.length;
  putNumber(to, 0, 4);
  align(to, ALIGNMENT[type[0] ?? ""] ?? 1);
  const begin = to.length;
  for (const value of values) put(to, type, value);
  const length: number[] = [];
  putNumber(length, to.length - begin, 4);
  to.splice(lengthAt, 4, ...length);
}

function putNumber(to: number[], value: number, bytes: number): void {
  for (let rest = BigInt(value), left = bytes; left > 0; left--, rest >>= 8n) to.push(Number(rest & 0xffn));
}

/** Splits a signature into its complete types. */
function typesOf(signature: string): string[] {
  const types: string[] = [];
  for (let at = 0; at < signature.length; ) {
    const end = endOfType(signature, at);
    types.push(signature.slice(at, end));
    at = end;
  }
  return types;
}

function endOfType(signature: string, from: number): number {
  if (signature[from] === "a") return endOfType(signature, from + 1);
  if (signature[from] !== "(") return from + 1;
  let at = from + 1;
  while (signature[at] !== ")") at = endOfType(signature, at);
  return at + 1;
}

function align(to: number[], boundary: number): void {
  while (to.length % boundary !== 0) to.push(0);
}

function padded(length: number, boundary: number): number {
  return Math.ceil(length / boundary) * boundary;
}
