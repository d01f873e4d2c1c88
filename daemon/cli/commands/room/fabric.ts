/** `roomd send` and `roomd wait`: takes part in a room from outside its sandboxes. */
import type { Command } from "commander";
import {
  agentSend,
  agentWait,
  MAX_WAIT_MS,
  MESSAGE_KINDS,
  type MessageKind,
  messageAck,
} from "../../../../shared/api/fabric.ts";
import { newId } from "../../../../shared/ids.ts";
import { CliError } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { choice, command, timeout } from "../../kit/command.ts";
import { counted, type JsonOption, show } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { type ContentOptions, contentOf, textOf, withContent } from "./message.ts";

const DEFAULT_MS = 60_000;
const DEFAULT_NAME = "operator";

interface SendOptions extends JsonOption, ContentOptions {
  from: string;
  kind?: MessageKind;
  replyTo?: string;
  messageId?: string;
  wait?: boolean;
  timeout?: number;
}

export function sendCommand(): Command {
  const about = {
    summary: "send a message to an agent, to several (a,b), to all (*) or to a topic (topic:NAME)",
    examples: [
      "roomd send build-42 worker-1 'start now'",
      "roomd send build-42 worker-1 status? --wait --timeout 2m",
      "roomd send build-42 topic:builds '{\"id\": 7}' --data --message-id build-7",
    ],
  };
  return withContent(command("send <room> <to> <text>", about))
    .option("--from <agent>", "the agent that sends it", DEFAULT_NAME)
    .addOption(choice("--kind <kind>", "kind of message (default: event; with --wait: request)", MESSAGE_KINDS))
    .option("--reply-to <message>", "the message that it replies to")
    .option("--message-id <id>", "your own name for it; the same name is never sent twice")
    .option("--wait", "wait for the reply and print it")
    .addOption(timeout("how long to wait for it, at most 5m (default: 60s)"))
    .action(async (room_id: string, to: string, text: string, options: SendOptions) => {
      const { from: source, kind, replyTo: reply_to, messageId } = options;
      const waits = options.wait ? { wait_reply: true, timeout_ms: options.timeout ?? DEFAULT_MS } : {};
      const message_id = messageId ?? newId("msg");
      const reply = await withProgress(options.wait ? `waiting for the reply of ${to}` : `sending to ${to}`, () =>
        call(agentSend, {
          ...{ room_id, source, kind, reply_to, message_id },
          ...contentOf(text, options),
          ...addressOf(to),
          ...waits,
        }),
      );
      await show(reply, options, (sent) =>
        sent.reply
          ? textOf(sent.reply)
          : [`message ${sent.message_id} is kept for ${counted(sent.recipient_count, "recipient")}`],
      );
    });
}

interface WaitOptions extends JsonOption {
  timeout?: number;
  keep?: boolean;
  from?: string;
  topic?: string;
  kind?: MessageKind;
}

export function waitCommand(): Command {
  return command("wait <room> <agent>", {
    summary: "wait for an agent's next message, print it, and acknowledge it",
    examples: ["roomd wait build-42 operator", "roomd wait build-42 operator --from worker-1 --timeout 10m"],
  })
    .option("--from <agent>", "only a message from this agent; others stay in the inbox")
    .option("--topic <pattern>", "only a message to this topic")
    .addOption(choice("--kind <kind>", "only a message of this kind", MESSAGE_KINDS))
    .option("--keep", "leave it in the inbox")
    .addOption(timeout("how long to wait (default: 60s)"))
    .action(async (room_id: string, agent_id: string, options: WaitOptions) => {
      const { from: source, topic, kind } = options;
      const timeoutMs = options.timeout ?? DEFAULT_MS;
      const message = await withProgress(`waiting for a message to ${agent_id}`, () =>
        nextMessage({ room_id, agent_id, source, topic, kind }, timeoutMs),
      );
      const text = JSON.stringify(message);
      await show({ value: message, text }, options, () => {
        const [first, ...rest] = textOf(message);
        return [`${message.source} ${message.message_id} ${first}`, ...rest];
      });
      if (!options.keep) await call(messageAck, { room_id, message_id: message.message_id, agent_id });
    });
}

/** Polls, since one call of the service is limited to `MAX_WAIT_MS`. */
async function nextMessage(params: Parameters<typeof call<typeof agentWait>>[1], timeoutMs: number) {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const wait_ms = Math.max(0, Math.min(MAX_WAIT_MS, Math.ceil(end - performance.now())));
    const [message] = (await call(agentWait, { ...params, limit: 1, wait_ms })).value.items;
    if (message) return message;
    if (wait_ms === 0) throw new CliError(`No message came within ${timeoutMs / 1000} s.`);
  }
}

function addressOf(to: string) {
  if (to.startsWith("topic:")) return { topic: to.slice("topic:".length) };
  return to.includes(",") ? { destinations: to.split(",") } : { destination: to };
}
