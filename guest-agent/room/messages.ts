/** The commands for messages and barriers. */
import { Command, InvalidArgumentError, Option } from "commander";
import { DURATION_FORM, parseDuration } from "../../shared/duration.ts";
import { readTraceparent, TRACEPARENT, writeTraceparent } from "../../shared/traceparent.ts";
import { call, type Json, OWN_AGENT, print, RoomError, textOf } from "./api.ts";

const LONGEST_POLL_MS = 30_000;
const DEFAULT_TIMEOUT_MS = 60_000;

interface PrintOptions {
  json?: boolean;
}

interface Message extends Json {
  message_id: string;
  seq: number;
  source: string;
  kind: string;
  payload: unknown;
  payload_b64: string | null;
}

export function messageCommands(): Command[] {
  const sendCommand = new Command("send")
    .description("send a message to an agent, to * for all others, or to a topic")
    .argument("<to>", "an agent, several separated by commas, *, or topic:NAME")
    .argument("<text>", "the message; - is standard input")
    .option("--data", "the text is JSON")
    .option("--ack", "deliver it again until it is acknowledged")
    .option("--message-id <id>", "your own name for it; the same name is never sent twice")
    .action(
      async (
        to: string,
        text: string,
        options: PrintOptions & { data?: boolean; ack?: boolean; messageId?: string },
      ) => {
        const sent = await call("POST", "/messages", {
          ...addressOf(to),
          ...(await payloadOf(text, options)),
          ...(options.ack ? { ack_required: true } : {}),
          message_id: options.messageId ?? newName(),
        });
        print(sent, options, () => [String(sent.message_id)]);
      },
    );
  const request = new Command("request")
    .description("send a request to an agent and wait for its reply")
    .argument("<agent>")
    .argument("<text>", "the request; - is standard input")
    .option("--data", "the text is JSON")
    .addOption(timeout())
    .action(async (agent: string, text: string, options: PrintOptions & { data?: boolean; timeout: number }) => {
      const { reply } = await call("POST", "/messages", {
        destination: agent,
        ...(await payloadOf(text, options)),
        message_id: newName(),
        wait_reply: true,
        timeout_ms: options.timeout,
      });
      print(reply, options, () => [shownPayload(reply as Message)]);
    });
  const reply = new Command("reply")
    .description("reply to a message")
    .argument("<message_id>")
    .argument("<text>", "the reply; - is standard input")
    .option("--data", "the text is JSON")
    .action(async (messageId: string, text: string, options: PrintOptions & { data?: boolean }) => {
      const path = `/messages/${encodeURIComponent(messageId)}/reply`;
      const sent = await call("POST", path, { ...(await payloadOf(text, options)), reply_message_id: newName() });
      print(sent, options, () => []);
    });
  const inbox = new Command("inbox")
    .description("print the messages in the inbox, and acknowledge them")
    .option("--keep", "leave it in the inbox")
    .action(async (options: PrintOptions & { keep?: boolean }) => {
      const { items } = (await call("GET", "/messages")) as { items: Message[] };
      print(items, options, () => items.map(line));
      if (!options.keep) await acknowledge(items);
    });
  const wait = new Command("wait")
    .description("wait for the next message, print it, and acknowledge it")
    .option("--from <agent>", "only a message from this agent; others stay in the inbox")
    .addOption(timeout())
    .action(async (options: PrintOptions & { from?: string; timeout: number }) => {
      const found = await nextMessage(options.from, options.timeout);
      print(found, options, () => [line(found)]);
      await acknowledge([found]);
    });
  const trace = new Command("trace")
    .description("print the traceparent of a message, by which its reader continues its sender's trace")
    .argument("<message_id>")
    .action(async (messageId: string, options: PrintOptions) => {
      const { headers } = await call("GET", `/messages/${encodeURIComponent(messageId)}`);
      // The sender controls this header, and a shell may use the output as its own: so it is parsed and rewritten.
      const place = readTraceparent((headers as Record<string, string>)[TRACEPARENT]);
      const traceparent = place && writeTraceparent(place);
      print({ traceparent }, options, () => (traceparent === null ? [] : [traceparent]));
    });
  return [sendCommand, request, reply, inbox, wait, trace];
}

export function barrierCommand(): Command {
  return new Command("barrier")
    .description("arrive at a barrier and wait for the others")
    .argument("<barrier_id>")
    .option("--parties <count>", "number of agents to wait for")
    .option("--with <agents>", "names of the agents to wait for, separated by commas, including this agent")
    .addOption(timeout())
    .action(
      async (barrier_id: string, options: PrintOptions & { parties?: string; with?: string; timeout: number }) => {
        const released = await call("POST", "/barriers", {
          barrier_id,
          generation: await nextGeneration(barrier_id),
          ...(options.parties === undefined ? {} : { parties: Number(options.parties) }),
          ...(options.with === undefined ? {} : { participants: options.with.split(",") }),
          timeout_ms: options.timeout,
        });
        print(released, options, () => [`${barrier_id} ${released.generation}: ${released.state}`]);
      },
    );
}

function timeout(): Option {
  const option = new Option("--timeout <time>", "how long to wait, such as 90s or 5m; a bare number is seconds");
  return option.default(DEFAULT_TIMEOUT_MS, "60s").argParser((text) => {
    const ms = parseDuration(text);
    if (ms === null) throw new InvalidArgumentError(DURATION_FORM);
    return ms;
  });
}

/** The oldest matching message of the inbox; others stay in the inbox. */
async function nextMessage(from: string | undefined, timeoutMs: number): Promise<Message> {
  const end = performance.now() + timeoutMs;
  const only = from === undefined ? "" : `&source=${encodeURIComponent(from)}`;
  for (;;) {
    const left = Math.max(0, Math.min(LONGEST_POLL_MS, Math.ceil(end - performance.now())));
    const { items } = (await call("GET", `/messages?limit=1&wait_ms=${left}${only}`)) as { items: Message[] };
    if (items[0]) return items[0];
    if (left === 0) throw new RoomError("No message arrived in time.", "", {});
  }
}

/** The generation names the arrival: a retry after a lost answer must not arrive in the next generation. */
async function nextGeneration(barrierId: string): Promise<number> {
  try {
    const { generation, state } = await call("GET", `/barriers/${encodeURIComponent(barrierId)}`);
    return Number(generation) + (state === "waiting" ? 0 : 1);
  } catch (error) {
    if (error instanceof RoomError && error.code === "barrier_not_found") return 1;
    throw error;
  }
}

/** The service deduplicates messages with the same name. */
function newName(): string {
  return `msg_${crypto.randomUUID()}`;
}

async function acknowledge(messages: Message[]): Promise<void> {
  for (const { message_id } of messages) await call("POST", `/messages/${message_id}/ack`, { agent_id: OWN_AGENT });
}

function addressOf(to: string): Json {
  if (to.startsWith("topic:")) return { topic: to.slice("topic:".length) };
  return to.includes(",") ? { destinations: to.split(",") } : { destination: to };
}

async function payloadOf(text: string, options: { data?: boolean }): Promise<Json> {
  const given = await textOf(text);
  return { payload: options.data ? (JSON.parse(given) as unknown) : given };
}

/** For people and for `read`: source, message id and payload. */
function line(message: Message): string {
  return `${message.source} ${message.message_id} ${shownPayload(message)}`;
}

function shownPayload({ payload, payload_b64 }: Message): string {
  return payload_b64 ?? (typeof payload === "string" ? payload : JSON.stringify(payload));
}
