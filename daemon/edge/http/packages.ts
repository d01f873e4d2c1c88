/** The client packages of the running version, as built by packaging/client-packages: the same for all, without a key. */
import { createHash } from "node:crypto";
import PACKAGES from "../../../dist/clients.pack" with { type: "text" };
import { usualHeaders } from "./reply.ts";

const DIRECTORY = "/sdk/";
const TYPES: Record<string, string> = { tgz: "application/gzip", whl: "application/zip" };

/** Answers a request by its headers and request ID. */
type PackageHandler = (headers: Headers, requestId: string) => Response;

/** The packages by their paths; `host` is the name of this host. */
export function makePackages(host: string): Map<string, PackageHandler> {
  const packages = Object.entries(JSON.parse(PACKAGES) as Record<string, string>);
  return new Map(packages.map(([name, base64]) => [DIRECTORY + name, answerWith(host, name, base64)]));
}

function answerWith(host: string, name: string, base64: string): PackageHandler {
  let made: { bytes: Uint8Array<ArrayBuffer>; etag: string } | undefined;
  return (requestHeaders, requestId) => {
    made ??= decoded(base64);
    const { bytes, etag } = made;
    const headers = {
      ...usualHeaders(requestId, host),
      "Content-Type": TYPES[name.split(".").at(-1) ?? ""] ?? "application/octet-stream",
      // The URL stays the same when the version changes.
      "Cache-Control": "no-cache",
      ETag: etag,
      "X-Content-Type-Options": "nosniff",
    };
    const known = requestHeaders.get("if-none-match")?.split(/\s*,\s*/) ?? [];
    const isKnown = known.some((each) => each === "*" || each.replace(/^W\//, "") === etag);
    return isKnown ? new Response(null, { status: 304, headers }) : new Response(bytes, { headers });
  };
}

function decoded(base64: string) {
  const bytes = new Uint8Array(Buffer.from(base64, "base64"));
  return { bytes, etag: `"${createHash("sha256").update(bytes).digest("hex")}"` };
}
