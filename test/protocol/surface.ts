/**
 * A reader of the guest protocol's surface from its sources: values from the modules, and fields from their text, because types do not
 * exist when tests run.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as files from "../../shared/agent-protocol/files.ts";
import * as frame from "../../shared/agent-protocol/frame.ts";
import * as link from "../../shared/agent-protocol/link.ts";
import * as messages from "../../shared/agent-protocol/messages.ts";

const PROTOCOL = join(import.meta.dirname, "../../shared/agent-protocol");

export const GENERATION = messages.GENERATION;

/** `name: type` of every field, or the text of a type that is not an interface. */
type Shape = Record<string, string> | string;

export interface Surface {
  frame: { header_bytes: number; types: Record<string, number> };
  limits: Record<string, number>;
  constants: Record<string, number | string>;
  channels: Record<string, number>;
  error_codes: string[];
  methods: Record<string, Shape>;
  messages: Record<string, Shape>;
}

export function surface(): Surface {
  const sources = ["messages.ts", "files.ts"].map((name) => join(PROTOCOL, name));
  const shapes = Object.assign({}, ...sources.map((file) => shapesIn(readFileSync(file, "utf8")))) as Record<
    string,
    Shape
  >;
  const methodOf = (shape: Shape) =>
    typeof shape === "string" ? undefined : /^"(\w+)"$/.exec(shape.method ?? "")?.[1];
  const entries = Object.entries(shapes);
  const plain = [...Object.entries(messages), ...Object.entries(files)].filter(
    ([name, value]) => !name.endsWith("GENERATION") && typeof value !== "object",
  );
  return {
    frame: {
      header_bytes: frame.encodeFrame(frame.FrameType.ping, 0, new Uint8Array(0)).byteLength,
      types: frame.FrameType,
    },
    limits: {
      data_bytes: frame.MAX_DATA_BYTES,
      payload_from_guest: frame.MAX_PAYLOAD_FROM_GUEST,
      payload_from_host: frame.MAX_PAYLOAD_FROM_HOST,
      window_bytes: link.WINDOW_BYTES,
    },
    constants: Object.fromEntries(plain) as Record<string, number | string>,
    channels: messages.Channel,
    error_codes: Object.values(messages.StreamErrorCode).sort(),
    methods: Object.fromEntries(
      entries.flatMap(([, shape]) => {
        const method = methodOf(shape);
        return method === undefined ? [] : [[method, shape]];
      }),
    ),
    messages: Object.fromEntries(entries.filter(([, shape]) => methodOf(shape) === undefined)),
  };
}

/** The exported types of a source: interfaces by their fields, others as they are written. */
function shapesIn(source: string): Record<string, Shape> {
  const text = source.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, "");
  const interfaces = [...text.matchAll(/export interface (\w+) \{([\s\S]*?)\n\}/g)].map(([, name, body]) => [
    String(name),
    fieldsOf(String(body)),
  ]);
  // A type that only names others adds nothing to the surface.
  const types = [...text.matchAll(/export type (\w+) =([^;]*\{[\s\S]*?);\n(?=\n|$)/g)].map(([, name, body]) => [
    String(name),
    String(body).replace(/\s+/g, " ").trim(),
  ]);
  return Object.fromEntries([...interfaces, ...types]);
}

function fieldsOf(body: string): Record<string, string> {
  const fields = [...body.matchAll(/^ {2}(\w+\??): ([\s\S]*?);$/gm)];
  return Object.fromEntries(fields.map(([, name, type]) => [String(name), String(type).replace(/\s+/g, " ")]));
}
