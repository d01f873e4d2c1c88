/** `roomd message`: the messages of a room and their delivery, and their input and output formats. */
import type { Command } from "commander";
import {
  agentWait,
  MESSAGE_KINDS,
  type MessageRecord,
  messageAck,
  messageGet,
  messageReply,
} from "../../../../shared/api/fabric.ts";
import { newId } from "../../../../shared/ids.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { choice, command, commandGroup, timeout } from "../../kit/command.ts";
import { counted, type JsonOption, printable, show } from "../../kit/output.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { integer, milliseconds, pair } from "../../kit/values.ts";
import { columns, verb } from "../../kit/verb.ts";
import { sendManyCommand } from "./message-send.ts";

const SHOWN_CHARACTERS = 60;

export function messageCommand(): Command {
  return commandGroup("message", {
    summary: "messages of a room and their delivery; see also `roomd send` and `roomd wait`",
    examples: ["roomd message list build-42", "roomd message get build-42 msg_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D"],
  })
    .addCommand(
      verb(agentWait, "list <room>", "list a room's messages or an agent's inbox, without taking any out", {
        examples: [
          "roomd message list build-42",
          "roomd message list build-42 --agent worker-1 --timeout 30s",
          "roomd message list build-42 --from planner --after 120 --json",
        ],
        options: [
          ["--agent <agent>", "the inbox of this agent"],
          ["--from <agent>", "only messages from this agent"],
          ["--topic <pattern>", "only messages to this topic"],
          choice("--kind <kind>", "only messages of this kind", MESSAGE_KINDS),
          ["--after <seq>", "start after this message; in an inbox this marks all earlier ones as read", integer(0)],
          timeout("wait this long for the first, at most 50s (default: do not wait)"),
        ],
        fields: { from: "source", timeout: "wait_ms" },
        lines: columns(
          ["SEQ", (item) => item.seq],
          ["MESSAGE", (item) => item.message_id],
          ["FROM", (item) => item.source],
          [
            "TO",
            ({ topic, destination, destinations }) =>
              topic === null ? (destination ?? destinations?.join() ?? null) : `topic:${topic}`,
          ],
          ["KIND", (item) => item.kind],
          ["CREATED", (item) => item.created_at],
          ["TEXT", (item) => textOf(item).join(" ").slice(0, SHOWN_CHARACTERS)],
        ),
      }),
    )
    .addCommand(
      verb(messageGet, "get <room> <message>", "print a message and its delivery to each recipient", {
        examples: ["roomd message get build-42 msg_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D"],
        lines: recordLines,
      }),
    )
    .addCommand(sendManyCommand())
    .addCommand(reply())
    .addCommand(
      verb(messageAck, "ack <room> <message>", "acknowledge a message: it leaves the inbox", {
        examples: ["roomd message ack build-42 msg_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D --agent worker-1"],
        options: [["--agent <agent>", "the recipient (default: its only one)"]],
        lines: ({ agent_id, state }, { message_id }) => [`message ${message_id} is ${state} by ${agent_id}`],
      }),
    );
}

export interface ContentOptions {
  data?: boolean;
  base64?: boolean;
  header?: Record<string, string>;
  ack?: boolean;
  ttl?: number;
}

/** Options of a message in addition to its text. */
export function withContent(command: Command): Command {
  return command
    .option("--data", "the text is JSON")
    .option("--base64", "the text is base64 of bytes")
    .option("--header <key=value>", "a header of the message; repeatable", pair)
    .option("--ack", "deliver it again until it is acknowledged")
    .option("--ttl <time>", "it expires unread after this time, at most 7d", milliseconds);
}

export function contentOf(
  text: string,
  { data, base64, header: headers, ack: ack_required, ttl: ttl_ms }: ContentOptions,
) {
  if (data && base64) throw new CliError("Give --data or --base64, not both.", EXIT.usage);
  const content = base64 ? { payload_b64: text } : { payload: data ? readJson(text) : text };
  return { ...content, headers, ack_required, ttl_ms };
}

/** A message's payload as lines. It comes from a guest: on a terminal, control characters are escaped. */
export function textOf({ payload, payload_b64 }: Pick<MessageRecord, "payload" | "payload_b64">): string[] {
  const text = payload_b64 ?? (typeof payload === "string" ? payload : JSON.stringify(payload));
  return text.split("\n").map((line) => (process.stdout.isTTY ? printable(line) : line));
}

interface ReplyOptions extends JsonOption, ContentOptions {
  from?: string;
  messageId?: string;
}

function reply(): Command {
  const about = {
    summary: "reply to a message, which acknowledges it",
    examples: ["roomd message reply build-42 msg_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D approved --from reviewer"],
  };
  return withContent(command("reply <room> <message> <text>", about))
    .option("--from <agent>", "the agent that replies (default: its only recipient)")
    .option("--message-id <id>", "your own name for the reply; the same name is never sent twice")
    .action(async (room_id: string, message_id: string, text: string, options: ReplyOptions) => {
      const reply_message_id = options.messageId ?? newId("msg");
      const replyFields = { room_id, message_id, source: options.from, reply_message_id };
      const sent = await call(messageReply, { ...replyFields, ...contentOf(text, options) });
      await show(sent, options, (kept) => [
        `message ${kept.message_id} is kept for ${counted(kept.recipient_count, "recipient")}`,
      ]);
    });
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new CliError("The text is not JSON, which --data requires.", EXIT.usage);
  }
}
