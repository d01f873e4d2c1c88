/** Owns `roomd send`, `roomd wait` and `roomd barrier`: taking part in a room from outside its sandboxes. */
import type { Command } from "commander";
import { barrierArrive } from "../../shared/api/barriers.ts";
import { agentSend, agentWait, MAX_WAIT_MS, type MessageRecord, messageAck } from "../../shared/api/fabric.ts";
import { newId } from "../../shared/ids.ts";
import { CliError } from "./cli-error.ts";
import { call } from "./client.ts";
import { command, type JsonOption } from "./command.ts";
import { printable, show } from "./output.ts";
import { withProgress } from "./progress.ts";
import { integer, seconds } from "./values.ts";

const DEFAULT_SECONDS = 60;
const DEFAULT_NAME = "operator";

interface SendOptions extends JsonOption {
  from: string;
  data?: boolean;
  ack?: boolean;
  wait?: boolean;
  timeout: number;
}

export function sendCommand(): Command {
  return command("send <room> <to> <text>", {
    summary: "send a message to an agent, to several (a,b), to all (*) or to a topic (topic:NAME)",
    examples: ["roomd send build-42 worker-1 'start now'", "roomd send build-42 worker-1 status? --wait"],
  })
    .option("--from <agent>", "who sends it", DEFAULT_NAME)
    .option("--data", "the text is JSON")
    .option("--ack", "deliver it again until it is acknowledged")
    .option("--wait", "wait for the reply and print it")
    .option("--timeout <time>", "how long to wait for it", seconds, DEFAULT_SECONDS)
    .action(async (room_id: string, to: string, text: string, options: SendOptions) => {
      const waits = options.wait ? { wait_reply: true, timeout_ms: options.timeout * 1000 } : {};
      const payload = options.data ? readJson(text) : text;
      const ack_required = options.ack;
      const reply = await withProgress(`waiting for the reply of ${to}`, () =>
        call(agentSend, {
          ...{ room_id, source: options.from, payload, message_id: newId("msg"), ack_required },
          ...addressOf(to),
          ...waits,
        }),
      );
      await show(reply, options, (sent) =>
        sent.reply
          ? linesOf(sent.reply)
          : [`message ${sent.message_id} is kept for ${sent.recipient_count} recipient(s)`],
      );
    });
}

interface WaitOptions extends JsonOption {
  timeout: number;
  keep?: boolean;
  source?: string;
}

export function waitCommand(): Command {
  return command("wait <room> <agent>", {
    summary: "wait for an agent's next message, print it, and acknowledge it",
    examples: ["roomd wait build-42 operator", "roomd wait build-42 operator --source worker-1 --timeout 10m"],
  })
    .option("--source <agent>", "only one from this agent")
    .option("--keep", "leave it in the inbox")
    .option("--timeout <time>", "how long to wait", seconds, DEFAULT_SECONDS)
    .action(async (room_id: string, agent_id: string, { source, keep, timeout, json }: WaitOptions) => {
      const end = performance.now() + timeout * 1000;
      for (;;) {
        const left = Math.max(0, Math.min(MAX_WAIT_MS, Math.ceil(end - performance.now())));
        const page = await withProgress(`waiting for a message to ${agent_id}`, () =>
          call(agentWait, { room_id, agent_id, source, limit: 1, wait_ms: left }),
        );
        const [message] = page.value.items;
        if (message) {
          const text = JSON.stringify(message);
          await show({ value: message, text }, { json }, () => {
            const [first, ...rest] = linesOf(message);
            return [`${message.source} ${message.message_id} ${first}`, ...rest];
          });
          if (!keep) await call(messageAck, { room_id, message_id: message.message_id, agent_id });
          return;
        }
        if (left === 0) throw new CliError(`no message came within ${timeout} s`);
      }
    });
}

interface BarrierOptions extends JsonOption {
  parties?: number;
  with?: string;
  timeout: number;
}

export function barrierCommand(): Command {
  return command("barrier <room> <barrier> <agent>", {
    summary: "arrive at a barrier as this agent, and wait until all have",
    examples: [
      "roomd barrier build-42 merged operator --parties 3",
      "roomd barrier build-42 merged operator --with operator,worker-1",
    ],
  })
    .option("--parties <n>", "how many it waits for", integer(1))
    .option("--with <agents>", "those it waits for by name, with commas between")
    .option("--timeout <time>", "how long to wait", seconds, DEFAULT_SECONDS)
    .action(async (room_id: string, barrier_id: string, agent_id: string, options: BarrierOptions) => {
      const { parties, timeout } = options;
      const participants = options.with?.split(",");
      const arrival = { room_id, barrier_id, agent_id, parties, participants, timeout_ms: timeout * 1000 };
      const reply = await withProgress(`waiting at barrier ${barrier_id}`, () => call(barrierArrive, arrival));
      await show(reply, options, ({ generation, state }) => [`barrier ${barrier_id} ${generation} is ${state}`]);
    });
}

function addressOf(to: string) {
  if (to.startsWith("topic:")) return { topic: to.slice("topic:".length) };
  return to.includes(",") ? { destinations: to.split(",") } : { destination: to };
}

/** A guest chooses these words, and a terminal would obey some of them. */
function linesOf({ payload, payload_b64 }: MessageRecord): string[] {
  const text = payload_b64 ?? (typeof payload === "string" ? payload : JSON.stringify(payload));
  return text.split("\n").map((line) => (process.stdout.isTTY ? printable(line) : line));
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new CliError("the text is not JSON, as --data says it is");
  }
}
