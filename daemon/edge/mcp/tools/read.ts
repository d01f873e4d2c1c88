/** The tool fs_read: a file of the drive as text, a bounded part of it unless the call names a length. */
import { fsRead } from "../../../../shared/api/drive.ts";
import { textOf } from "../../../core/text.ts";
import { answerOf, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { Arguments, ToolCall } from "../call.ts";
import { grouped } from "../output-text.ts";
import { readable } from "../readable.ts";

export const DEFAULT_READ_BYTES = 32 * 1024;

export async function read(call: ToolCall, input: Arguments): Promise<ToolAnswer> {
  const length = input.length ?? DEFAULT_READ_BYTES;
  const reply = await call.ask(fsRead, { ...input, length });
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "problem") return answerOf(reply);
  const { content, content_b64, ...about } = reply.body;
  const bytes = typeof content === "string" ? Buffer.from(content) : Buffer.from(String(content_b64 ?? ""), "base64");
  return fileAnswer(call, { ...about, offset: Number(about.offset) }, bytes, {
    isBound: input.length === undefined,
    next: (offset) => ({ tool: "fs_read", arguments: { ...call.given, offset } }),
  });
}

interface ReadFacts {
  offset: number;
  size_bytes?: unknown;
  eof?: unknown;
  [name: string]: unknown;
}

interface Going {
  isBound: boolean;
  next(offset: number): { tool: string; arguments: Arguments };
}

/** The file's bytes as text, and the call for the remaining bytes, if any. */
export function fileAnswer(call: ToolCall, about: ReadFacts, bytes: Buffer, { isBound, next }: Going): ToolAnswer {
  const shown = isBound ? readable(bytes, about.eof === true) : bytes;
  const isAll = about.eof === true && shown.length === bytes.length;
  const end = about.offset + shown.length;
  const text = textOf(shown);
  const going = isAll ? null : next(end);
  const size = typeof about.size_bytes === "number" ? ` of ${grouped(about.size_bytes)}` : "";
  const note = going
    ? `\n[bytes ${grouped(about.offset)} to ${grouped(end)}${size}; read on with ${call.spell(going)}]`
    : "";
  const result = {
    ...about,
    length: shown.length,
    eof: isAll,
    ...(text === null ? { encoding: "base64" } : {}),
    ...(going ? { next: call.shown(going) } : {}),
  };
  return { ok: true, result, text: (text ?? shown.toString("base64")) + note };
}
