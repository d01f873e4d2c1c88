/**
 * Serves the hub's files: programs and styles with a hash of their content in the name, so that browsers cache them permanently. The format
 * of the pack is in packaging/pack-hub.ts.
 */
import { brotliDecompressSync } from "node:zlib";
import HUB from "../../../dist/hub.pack" with { type: "text" };

const PATH = "/ui/";
const TYPES: Record<string, string> = { js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8" };

interface HubFile {
  type: string;
  packed: Uint8Array<ArrayBuffer>;
  /** For clients that do not accept brotli, which browsers do over TLS only. */
  plain: () => Uint8Array<ArrayBuffer>;
}

const files = new Map(
  Object.entries(JSON.parse(HUB) as Record<string, string>).map(([name, base64]): [string, HubFile] => {
    const packed = new Uint8Array(Buffer.from(base64, "base64"));
    let plain: Uint8Array<ArrayBuffer> | null = null;
    const unpack = () => {
      plain ??= new Uint8Array(brotliDecompressSync(packed));
      return plain;
    };
    return [
      PATH + name,
      { type: TYPES[name.split(".").at(-1) ?? ""] ?? "application/octet-stream", packed, plain: unpack },
    ];
  }),
);

const entry = (begins: string, ends: string): string => {
  const found = [...files.keys()].find((path) => path.startsWith(PATH + begins) && path.endsWith(ends));
  if (found === undefined) throw new Error(`the hub's pack has no ${begins}*${ends}`);
  return found;
};

export const HUB_PROGRAM = entry("main-", ".js");
export const HUB_STYLE = entry("hub-", ".css");

/** Whether the path is a hub file of this version, or of another. */
export const isHubFile = (path: string) => path.startsWith(PATH);

/** 404 for a file of another version: the requesting page reports it. */
export function answerHubFile(path: string, headers: Headers): Response {
  const file = files.get(path);
  const usual = { "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin" };
  if (!file) return new Response("", { status: 404, headers: { ...usual, "Cache-Control": "no-store" } });
  const takesBrotli = /(?:^|,)\s*br\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))|,|$)/.test(
    headers.get("accept-encoding") ?? "",
  );
  return new Response(takesBrotli ? file.packed : file.plain(), {
    headers: {
      ...usual,
      "Content-Type": file.type,
      "Cache-Control": "public, max-age=31536000, immutable",
      Vary: "Accept-Encoding",
      ...(takesBrotli ? { "Content-Encoding": "br" } : {}),
    },
  });
}
