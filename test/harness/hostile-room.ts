/** Owns a room whose every text is hostile: markup, what turns text around, escape sequences, and lines without end. */
const SCRIPT = `<script>alert(1)</script><img src=x onerror=alert(2)>"'><svg/onload=alert(3)>`;
const BIDI = "\u202Etxt.exe\u2066\u200Finvisible\u2069";
const ESCAPES = "\u001b[31mred\u001b]0;title\u0007\u001b]52;c;YWxlcnQ=\u0007\r\nnext\u0000end";
const LONG = "x".repeat(5000);

export const HOSTILE = {
  room: "hostile",
  agents: ["planner", "worker", "a".repeat(63)],
  texts: [SCRIPT, BIDI, ESCAPES, LONG, "javascript:alert(4)", "{{constructor.constructor('alert(5)')()}}"],
};

/** The calls of the API that make it, as who has a key can; there are no sandboxes in it. */
export function hostileCalls(): (readonly [method: string, path: string, body: object])[] {
  const { room, agents, texts } = HOSTILE;
  const labels = Object.fromEntries(texts.map((text, n) => [`label-${n}`, text.slice(0, 256)]));
  const messages = texts.flatMap((text, n) =>
    [text, { [text]: [text, { deep: text }] }].map((payload) => ({
      source: agents[n % agents.length],
      destination: "*",
      payload,
    })),
  );
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these cannot be in a name
  const files = texts.map((text) => ({ path: `/${text.slice(0, 60).replaceAll(/[/\u0000]/g, "_")}`, content: text }));
  return [
    ["POST", "/v1/rooms", { room_id: room, labels }],
    ...messages.map((message) => ["POST", `/v1/rooms/${room}/messages`, message] as const),
    ...files.map((file) => ["POST", `/v1/rooms/${room}/drive/write`, file] as const),
  ];
}
