/** A room with hostile texts only: markup, bidirectional controls, escape sequences, and overlong lines. */
const SCRIPT = `<script>alert(1)</script><img src=x onerror=alert(2)>"'><svg/onload=alert(3)>`;
const BIDI = "\u202Etxt.exe\u2066\u200Finvisible\u2069";
const ESCAPES = "\u001b[31mred\u001b]0;title\u0007\u001b]52;c;YWxlcnQ=\u0007\r\nnext\u0000end";
const LONG = "x".repeat(5000);

export const HOSTILE = {
  room: "hostile",
  /** The last is as long as a name may be, and has all that may be in one. */
  agents: ["planner", "worker", `${"a".repeat(63)}${"-._".repeat(21)}zz`],
  texts: [SCRIPT, BIDI, ESCAPES, LONG, "javascript:alert(4)", "{{constructor.constructor('alert(5)')()}}"],
  /** Names that a program in a guest looks up; the last ones can be names of hosts. */
  hosts: [
    "<img/src=x/onerror=alert(6)>.example",
    `${BIDI}.example`,
    "xn--txt-exe-9r0c.--__--.example",
    `${"l".repeat(63)}.${"n".repeat(63)}.${"m".repeat(63)}.example`,
  ],
  longFile: "/long-line.txt",
};
/** About as long as a message may be; and longer than the displayed part of a file. */
const LONG_MESSAGE = "m".repeat(60_000);
const LONG_FILE = "f".repeat(1_000_000);

/** No command, label or header may have a NUL in it. */
const worded = HOSTILE.texts.map((text) => text.replaceAll("\u0000", ""));
const labels = Object.fromEntries(HOSTILE.texts.map((text, n) => [`label-${n}`, text.slice(0, 256)]));

/** The API calls that create it, with the rights of any API key; it has no sandboxes. */
export function hostileCalls(): (readonly [method: string, path: string, body: object])[] {
  const { room, agents, texts } = HOSTILE;
  const headers = Object.fromEntries(worded.map((text, n) => [`h${".-_".repeat(20)}${n}`, text.slice(0, 500)]));
  const messages: object[] = texts.flatMap((text, n) =>
    [text, { [text]: [text, { deep: text }] }].map((payload) => ({
      source: agents[n % agents.length],
      destination: "*",
      payload,
      headers,
    })),
  );
  const topic = `${"t".repeat(127)}.${"-".repeat(128)}`;
  messages.push({ source: agents[0], topic, payload_b64: Buffer.from(texts.join("")).toString("base64") });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these cannot be in a name
  const files = texts.map((text) => ({ path: `/${text.slice(0, 60).replaceAll(/[/\u0000]/g, "_")}`, content: text }));
  return [
    ["POST", "/v1/rooms", { room_id: room, labels }],
    ...messages.map((message) => ["POST", `/v1/rooms/${room}/messages`, message] as const),
    ...files.map((file) => ["POST", `/v1/rooms/${room}/drive/write`, file] as const),
  ];
}

/** The calls for content that is longer than its displayed part: a message, and a file of one line. */
export function longCalls(): (readonly [method: string, path: string, body: object])[] {
  const { room, agents, longFile } = HOSTILE;
  const [source, , destination] = agents;
  const message = { source, destination, payload: LONG_MESSAGE, message_id: "i".repeat(128) };
  return [
    ["POST", `/v1/rooms/${room}/messages`, message],
    ["POST", `/v1/rooms/${room}/drive/write`, { path: longFile, content: LONG_FILE }],
  ];
}

/** Parameters of its sandbox besides name and size. */
export const HOSTILE_SANDBOX = {
  env: { [`_${"E".repeat(127)}`]: worded.join("") },
  labels,
  egress_allowlist: ["kept.example", `${"l".repeat(63)}.example`],
};

/** Queries the guest's name server for names, byte by byte as they are, and connects to the returned address. */
const ASK_NAMES = String.raw`
import os, socket
server = next(line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver"))
for name in os.environ["NAMES"].split("\n"):
    labels = [label.encode()[:63] for label in name.split(".")]
    question = b"".join(bytes([len(label)]) + label for label in labels) + b"\0\0\1\0\1"
    asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asked.settimeout(3)
    asked.connect((server, 53))
    asked.send(b"\0\7\1\0\0\1\0\0\0\0\0\0" + question)
    try:
        told = asked.recv(512)
    except OSError:
        continue
    if told[6:8] != b"\0\0":
        socket.socket().connect_ex((socket.inet_ntoa(told[-4:]), 80))
`;

/** Commands that print such texts in its sandbox, and end in every possible way; `ends` is the expected part of the answer. */
export function hostileCommands(): { body: object; ends: object }[] {
  const stdin = HOSTILE.texts.join("\n");
  const [script = ""] = worded;
  return [
    {
      body: { exec_id: "texts", argv: ["sh", "-c", "tee /dev/stderr; exit 3", ...worded], stdin },
      ends: { exit_code: 3 },
    },
    { body: { exec_id: "e".repeat(128), command: "tee /dev/console", stdin }, ends: { exit_code: 0 } },
    { body: { argv: ["python3", "-c", ASK_NAMES], env: { NAMES: HOSTILE.hosts.join("\n") } }, ends: { exit_code: 0 } },
    { body: { command: `kill -KILL $$ # ${script}` }, ends: { signal: "SIGKILL" } },
    { body: { command: `sleep 60 # ${script}`, timeout_ms: 200 }, ends: { timed_out: true } },
    { body: { argv: [script] }, ends: {} },
    { body: { command: "true", cwd: `/${script}` }, ends: { code: "cwd_not_found" } },
  ];
}
