/** `roomd message send`: many messages in one call, each a line of JSON. */
import type { Command } from "commander";
import { DEFAULT_MAX_BODY_BYTES } from "../../../../shared/api/contract.ts";
import { MAX_BATCH, messageSendMany } from "../../../../shared/api/fabric.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command } from "../../kit/command.ts";
import { localFile } from "../../kit/local-file.ts";
import { counted, type JsonOption, show } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { stdinBytes } from "../../kit/standard-input.ts";

type Receipt = Awaited<ReturnType<typeof call<typeof messageSendMany>>>["value"]["messages"][number];
type Message = Parameters<typeof call<typeof messageSendMany>>[1]["messages"][number];

const DEFAULT_NAME = "operator";
/** The rest of a request's body is small. */
const MAX_BYTES = DEFAULT_MAX_BODY_BYTES - 1024;

export function sendManyCommand(): Command {
  return command("send <room> <file>", {
    summary: "send many messages, each a line of JSON; FILE may be - for standard input",
    examples: [
      "roomd message send build-42 tasks.jsonl --from planner",
      'echo \'{"destination": "worker-1", "payload": {"task": 1}}\' | roomd message send build-42 -',
    ],
  })
    .option("--from <agent>", "the sender of messages without a source", DEFAULT_NAME)
    .action(async (room_id: string, file: string, options: JsonOption & { from: string }) => {
      const text = file === "-" ? String(await stdinBytes()) : await (await localFile(file)).text();
      const messages = messagesOf(text).map((message) => ({ source: options.from, ...message }));
      if (messages.length === 0) throw new CliError("There is no message to send.", EXIT.usage);
      const receipts = await withProgress(`sending ${counted(messages.length, "message")}`, async () => {
        const sent: Receipt[] = [];
        for (const batch of batchesOf(messages)) {
          const done = await call(messageSendMany, { room_id, messages: batch }).catch((error: unknown) => {
            throw afterSome(error, sent.length);
          });
          sent.push(...done.value.messages);
        }
        return sent;
      });
      const value = { messages: receipts };
      await show({ value, text: JSON.stringify(value) }, options, () => [
        `${counted(receipts.length, "message")} ${receipts.length === 1 ? "is" : "are"} kept`,
      ]);
    });
}

/** Skips empty lines. Throws CliError with the number of the invalid line. */
function messagesOf(text: string): Message[] {
  return text.split("\n").flatMap((line, index) => (line.trim() === "" ? [] : [messageOf(line, index + 1)]));
}

function messageOf(line: string, number: number): Message {
  try {
    const message: unknown = JSON.parse(line);
    if (typeof message === "object" && message !== null && !Array.isArray(message)) return message;
  } catch {}
  throw new CliError(`Line ${number} is not a JSON object.`, EXIT.usage);
}

/** The previous calls succeeded: a retry must not send their messages again. */
function afterSome(error: unknown, sent: number): unknown {
  if (!(error instanceof CliError) || sent === 0) return error;
  const { hint } = error.complaint;
  const rest = `The first ${sent} messages are sent: send only those after them.`;
  const after = new CliError({ ...error.complaint, hint: hint ? `${rest} ${hint}` : rest }, error.status, {
    cause: error.cause,
  });
  after.unreachable = error.unreachable;
  return after;
}

/** Batches of as many messages as one call accepts. A call stores all of its messages or none. */
function* batchesOf(messages: readonly Message[]): Generator<Message[]> {
  let batch: Message[] = [];
  let bytes = 0;
  for (const message of messages) {
    const size = Buffer.byteLength(JSON.stringify(message)) + 1;
    if (batch.length === MAX_BATCH || (batch.length > 0 && bytes + size > MAX_BYTES)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(message);
    bytes += size;
  }
  yield batch;
}
