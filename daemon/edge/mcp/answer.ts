/**
 * Form of a tool's response: one object, as structured content and as the same JSON in text. Output of commands and contents of files are
 * in the text alone.
 */
import type { CallToolResult } from "@modelcontextprotocol/server";
import type { Problem } from "../../../shared/api/errors.ts";
import { MAX_TOOL_WAIT_MS } from "../../../shared/api/mcp/tools.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Arguments, Refused, Reply, ToolCall } from "./call.ts";
import { compact } from "./compact.ts";
import { clip, sizeOf } from "./shorten.ts";

/** The call that continues from here. */
export interface NextCall {
  tool: string;
  arguments: Arguments;
}

export interface Failure {
  ok: false;
  problem: Problem;
  retry_after_seconds: number | null;
  next?: NextCall;
}

export interface Success {
  ok: true;
  result: Arguments;
  /** A PNG, in base64. */
  picture?: string;
  /** Shown in place of the result's JSON. */
  text?: string;
}

export type ToolAnswer = Success | Failure;

/** Longest refusal as JSON. */
const MAX_REFUSAL = 1000;
/** Maximum characters of the arguments of a suggested next call; the client has longer ones itself. */
const MAX_REPEATED = 4_000;
const MAX_SENTENCE = 320;
const MAX_DETAILS = 300;
const MAX_FIELDS = 5;

/** An operation's response, unchanged. */
export function answerOf(reply: Exclude<Reply, { kind: "late" }>): ToolAnswer {
  return reply.kind === "done" ? { ok: true, result: reply.body } : failed(reply);
}

export function failed({ problem, retry_after_seconds }: Refused, next?: NextCall): Failure {
  return { ok: false, problem, retry_after_seconds, ...(next ? { next } : {}) };
}

/** For an operation that does not finish within the time of a tool, and has no partial results. */
export function stillUnderWay(call: ToolCall, next?: NextCall): Failure {
  const error = new ServiceError("not_ready", {
    detail: `${call.tool.name} is still running after ${MAX_TOOL_WAIT_MS / 1000} s.`,
    hint: "Repeat the same call to keep waiting or to get the result.",
  });
  const again = next ?? { tool: call.tool.name, arguments: call.given };
  return failed(call.refuse(error), JSON.stringify(again.arguments).length <= MAX_REPEATED ? again : undefined);
}

export function structured(answer: ToolAnswer): Arguments {
  return answer.ok ? compact({ ok: true, result: answer.result }) : refusal(answer);
}

/** A refusal, short enough for a model that reads many of them. */
function refusal({ problem, retry_after_seconds, next }: Failure): Arguments {
  const { status, code, detail, hint, retryable, request_id, details, errors } = problem;
  const bad = errors
    .slice(0, MAX_FIELDS)
    .map(({ field, message }) => ({ field: clip(field, 64), message: clip(message, 120) }));
  const parts: Arguments = compact({
    ...{
      ok: false,
      status,
      code,
      detail: clip(detail, MAX_SENTENCE),
      hint: hint && clip(hint, MAX_SENTENCE),
      retryable,
    },
    ...(retry_after_seconds === null ? {} : { retry_after_seconds: Math.ceil(retry_after_seconds) }),
    ...(status >= 500 ? { request_id } : {}),
    ...(errors.length > 1 ? { errors: bad } : errors.length === 1 ? { field: clip(errors[0]?.field ?? "", 64) } : {}),
    ...(sizeOf(details) <= MAX_DETAILS ? { details } : {}),
    ...(next ? { next } : {}),
  });
  for (const name of ["details", "errors", "next"]) if (sizeOf(parts) > MAX_REFUSAL) delete parts[name];
  return parts;
}

export function toolResult(content: Arguments, shown: { picture?: string; text?: string } = {}): CallToolResult {
  const { picture, text } = shown;
  const pictures = picture === undefined ? [] : [{ type: "image" as const, data: picture, mimeType: "image/png" }];
  return {
    content: [{ type: "text", text: text ?? JSON.stringify(content) }, ...pictures],
    structuredContent: content,
    ...(content.ok ? {} : { isError: true }),
  };
}
