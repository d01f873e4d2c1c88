/**
 * Bytes that an inspector passes, parsed by others: llhttp, as in Node, in its strictest and its most lenient mode; a reader that is more
 * lenient than any known server; and OpenSSL. None of them may see another host than the allowed one.
 */
import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { helloOf, inRecords } from "./hello.ts";
import { bytesOf, EVIL_NAME, get, NAME, say } from "./said.ts";

const RUNS = 4000;
const HELLOS = 400;

type Callback = (...args: unknown[]) => number | undefined;
interface Llhttp {
  [callback: number]: Callback;
  initialize(type: number, resource: object, maxHeaderSize: number, lenient: number): void;
  execute(bytes: Buffer): unknown;
}
interface LlhttpClass {
  new (): Llhttp;
  REQUEST: number;
  kOnHeaders: number;
  kOnHeadersComplete: number;
  kLenientNone: number;
  kLenientAll: number;
}
const { HTTPParser } = (process as unknown as { binding(name: string): { HTTPParser: LlhttpClass } }).binding(
  "http_parser",
);

/** Hosts of the requests that llhttp finds, by Host and by target; null for a request without a host. */
function hostsByLlhttp(text: string, lenient: number): (string | null)[] {
  const hosts: (string | null)[] = [];
  let early: string[] = [];
  const parser = new HTTPParser();
  parser.initialize(HTTPParser.REQUEST, {}, 0, lenient);
  parser[HTTPParser.kOnHeaders] = (fields) => {
    early.push(...(fields as string[]));
    return 0;
  };
  parser[HTTPParser.kOnHeadersComplete] = (_major, _minor, fields, _method, url) => {
    const all = [...early, ...((fields as string[] | undefined) ?? [])];
    early = [];
    const found = all.filter((_, index) => index % 2 === 1 && all[index - 1]?.toLowerCase() === "host");
    hosts.push(...(found.length === 0 ? [null] : found));
    const authority = /^[a-z]+:\/\/([^/?#]*)/i.exec(String(url))?.[1];
    if (authority !== undefined) hosts.push(authority);
    return 0;
  };
  try {
    parser.execute(bytesOf(text));
  } catch {
    // It reads no further.
  }
  return hosts;
}

/** The same of the first request, by a reader that takes anything for a blank and passes over anything before the request. */
function hostsByAnyone(text: string): string[] {
  const [, line = "", rest = ""] = /^[^\x21-\x7e]*([^\n]*)\n(.*)$/s.exec(text) ?? [];
  if (!/HTTP\/\d+(\.\d+)?[^\x21-\x7e]*$/i.test(line)) return [];
  const [head = ""] = rest.split(/\r?\n\r?\n/);
  return [...head.matchAll(/^[^\x21-\x7e]*host[^\x21-\x7e]*:([^\n]*)/gim)].map((match) => match[1] ?? "");
}

const isFor = (host: string | null) => host?.trim().toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "") === NAME;

const part = fc.constantFrom(
  ...[get(NAME), get(EVIL_NAME), "GET", "POST", "FOO", "PRI", "CONNECT", "PROXY TCP4 1.1.1.1 1.1.1.1 1 1\r\n"],
  ...[" ", "\t", "\v", "\r", "\n", "\r\n", "\r\n\r\n", "\0", "\x1c", "\x85", "\xa0", "\xff", "\x16", "\x80"],
  ...[
    "/",
    "*",
    `http://${NAME}/`,
    `http://${EVIL_NAME}/`,
    " / HTTP/1.1\r\n",
    " / HTTP/1.0\r\n",
    "HTTP/1.1",
    "HTTP/2.0",
  ],
  ...[
    "Host",
    ":",
    "Host: ",
    `Host: ${NAME}\r\n`,
    `Host: ${EVIL_NAME}\r\n`,
    NAME,
    EVIL_NAME,
    `${NAME}@`,
    ":80",
    "\xad",
    ".",
  ],
  ...["Content-Length: 3\r\n", "Content-Length: 200\r\n", "Transfer-Encoding: chunked\r\n", "Upgrade: websocket\r\n"],
  ...[
    "3\r\nabc\r\n",
    "0\r\n\r\n",
    "abc",
    "1;x\r\n",
    "f".repeat(17),
    "Connection: upgrade\r\n",
    "Expect: 100-continue\r\n",
  ],
);
/** Parts in any order, a request that is nearly right, or one behind a request that is right. */
const spoken = fc.oneof(
  fc.array(part, { minLength: 1, maxLength: 12 }).map((parts) => parts.join("")),
  fc
    .tuple(
      fc.constantFrom("", get(NAME)),
      fc.constantFrom(get(NAME), get(EVIL_NAME)),
      fc.array(fc.tuple(fc.nat(60), part)),
    )
    .map(
      ([before, request, more]) =>
        before + more.reduce((text, [at, put]) => text.slice(0, at) + put + text.slice(at), request),
    ),
);

test("no HTTP parser sees another host than the approved one", () => {
  let seen = 0;
  fc.assert(
    fc.property(spoken, fc.boolean(), (text, isWhole) => {
      const { out } = say(...(isWhole ? [text] : (text.match(/.{1,7}/gs) ?? [])));
      const hosts = [HTTPParser.kLenientNone, HTTPParser.kLenientAll].flatMap((lenient) => hostsByLlhttp(out, lenient));
      const all = [...hosts, ...hostsByAnyone(out)];
      seen += all.length;
      expect(all.filter((host) => !isFor(host))).toEqual([]);
    }),
    { numRuns: RUNS },
  );
  // Else nothing was compared.
  expect(seen).toBeGreaterThan(RUNS / 10);
});

/** The names that OpenSSL sees in hellos, each a line of hexadecimal digits; "" for none, "!" for a hello that it refuses. */
const OPENSSL = `
import ssl, sys
for line in sys.stdin:
    seen = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda connection, name, own: seen.append(name or "")
    come, gone = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(come, gone, server_side=True)
    come.write(bytes.fromhex(line))
    try:
        connection.do_handshake()
    except ssl.SSLError:
        pass
    print(seen[0] if seen else "!")
`;

test("OpenSSL sees no other name in a hello than the approved one", () => {
  const name = fc.constantFrom(
    NAME,
    NAME.toUpperCase(),
    EVIL_NAME,
    `${NAME}.`,
    `${NAME}\xad`,
    `\xaa${NAME}`,
    "",
    "10.0.0.1",
  );
  const changes = fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 2 });
  const hellos = fc.sample(fc.tuple(fc.array(name, { minLength: 1, maxLength: 2 }), changes), HELLOS);
  const approved = hellos.flatMap(([names, changed]) => {
    const hello = inRecords(helloOf({ names }));
    for (const [at, byte] of changed) if (at < hello.byteLength) hello[at] = byte;
    return say(hello).out.length === hello.byteLength && hello[0] === 0x16 ? [hello.toString("hex")] : [];
  });
  const { stdout, stderr, error } = spawnSync("python3", ["-c", OPENSSL], {
    input: approved.join("\n"),
    encoding: "utf8",
  });
  if (error) return console.log("OpenSSL's reading of hellos: left out, because there is no python3");
  expect(stderr).toBe("");
  const seen = stdout.trimEnd().split("\n");
  expect(seen).toHaveLength(approved.length);
  expect(seen.filter((each) => each !== "!").length).toBeGreaterThan(HELLOS / 20);
  expect(seen.filter((each) => each !== "!" && each.toLowerCase() !== NAME)).toEqual([]);
});
