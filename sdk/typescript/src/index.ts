/** Rooms of sandboxes for groups of AI agents. */
export {
  Agent,
  type BarrierOptions,
  type Destination,
  type MessageOf,
  type MessageOptions,
  type Outgoing,
  type SendOptions,
  type WaitOptions,
} from "./agent.ts";
export type { ReadOptions, ReadOptions as FileReadOptions } from "./byte-range.ts";
export {
  Client,
  type ClientOptions,
  type Download,
  type DownloadOptions,
  type Input,
  type OperationName,
  type Reply,
  type Result,
} from "./client.ts";
export { Drive, type WriteOptions } from "./drive.ts";
export * from "./errors.ts";
export {
  type Command,
  type CommandEnd,
  type CommandOptions,
  type CommandResult,
  Execution,
  type OutputOptions,
  type OutputPart,
} from "./execution.ts";
export { Files, type FileWriteOptions } from "./files.ts";
export type * as schemas from "./generated/schemas.ts";
export { OwnRoom, Room } from "./room.ts";
export { Roomd, type RoomOptions } from "./roomd.ts";
export { ForkError, type ForkProblem, Sandbox, type SandboxChange, type SandboxListOptions } from "./sandbox.ts";
export type { OwnSandboxOptions, SandboxOptions } from "./sandbox-create.ts";
export type { UseInstead } from "./spellings.ts";
export type { EventOptions } from "./stream.ts";
export { type AttachedTerminal, Terminal } from "./terminal.ts";
export { continuing, type TracePlace } from "./trace.ts";
export type { CallOptions, FileBody, Retry } from "./transport.ts";
export { VERSION } from "./version.ts";
export { verifyWebhook, WebhookError } from "./webhooks.ts";
