/** The MCP tools `read_file`, `write_file`, `edit_file` and `list_files` of the small set. */
import { MAX_WRITE_BYTES } from "../../../../shared/api/drive.ts";
import type { Content } from "../../../core/call/content.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { textOf } from "../../../core/text.ts";
import { failed, type ToolAnswer } from "../answer.ts";
import type { ToolCall } from "../call.ts";
import { DEFAULT_READ_BYTES, fileAnswer } from "../tools/read.ts";
import { type FilePart, filesAt } from "./files.ts";
import { inPlace, type PlaceInput, placeOf } from "./place.ts";

interface FileInput extends PlaceInput {
  path: string;
}

/** Limit for edits, which read the whole file. */
const MAX_EDITED_BYTES = 1024 * 1024;

export async function readFile(
  call: ToolCall,
  { path, offset = 0, limit, ...location }: FileInput & { offset?: number; limit?: number },
): Promise<ToolAnswer> {
  const files = filesAt(call, placeOf(call, location), path);
  const part = await files.read(path, offset, limit ?? DEFAULT_READ_BYTES);
  if (!("kind" in part)) return part;
  const { bytes, size_bytes, eof } = part;
  return fileAnswer(call, { path, size_bytes, offset, eof }, bytes, {
    isBound: limit === undefined,
    next: (from) => ({ tool: "read_file", arguments: { ...call.given, offset: from } }),
  });
}

export async function writeFile(
  call: ToolCall,
  { path, content, content_b64, ...location }: FileInput & { content?: string; content_b64?: string },
): Promise<ToolAnswer> {
  if ((content === undefined) === (content_b64 === undefined)) {
    return refused(call, "content is required: the text of the file.");
  }
  const given: Content =
    content === undefined ? { text: content_b64 ?? "", encoding: "base64" } : { text: content, encoding: "utf8" };
  const place = placeOf(call, location);
  return await inPlace(call, place, () => filesAt(call, place, path).write(path, given));
}

export async function editFile(
  call: ToolCall,
  { path, old, new: replacement, all = false, ...location }: FileInput & { old: string; new: string; all?: boolean },
): Promise<ToolAnswer> {
  const files = filesAt(call, placeOf(call, location), path);
  const part = await files.read(path, 0, MAX_EDITED_BYTES);
  if (!("kind" in part)) return part;
  const text = wholeText(part);
  if (text === null) {
    return refused(
      call,
      `${path} is not text, or is over ${MAX_EDITED_BYTES} bytes: write it with write_file or a command.`,
    );
  }
  const times = text.split(old).length - 1;
  if (times === 0) return refused(call, `old is not in ${path}. Read the file, and send its exact text.`);
  if (times > 1 && !all) {
    return refused(call, `old is in ${path} ${times} times. Send more of the text around it, or all: true.`);
  }
  // Checked before the text is built: many short texts, each replaced by a long one, are gigabytes.
  if (text.length + times * (replacement.length - old.length) > MAX_WRITE_BYTES) {
    return failed(call.refuse(new ServiceError("file_too_large", { details: { max_bytes: MAX_WRITE_BYTES } })));
  }
  const changed = all ? text.replaceAll(old, () => replacement) : text.replace(old, () => replacement);
  const answer = await files.write(path, { text: changed, encoding: "utf8" });
  if (!answer.ok) return answer;
  const count = all ? times : 1;
  return { ok: true, result: { path, replaced: count }, text: `replaced ${count} in ${path}` };
}

const wholeText = ({ bytes, eof }: FilePart) => (eof ? textOf(bytes) : null);

export async function listFiles(
  call: ToolCall,
  { path = "/root", recursive = false, ...location }: Partial<FileInput> & { recursive?: boolean },
): Promise<ToolAnswer> {
  return await filesAt(call, placeOf(call, location), path).list(path, recursive);
}

function refused(call: ToolCall, detail: string): ToolAnswer {
  return failed(call.refuse(new ServiceError("validation_failed", { detail })));
}
