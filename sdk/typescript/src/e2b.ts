/** Drop-in replacement for E2B's JavaScript SDK: the same class names, on sandboxes of roomd. docs/migration.md has the differences. */
export {
  type CommandConnectOpts,
  type CommandHandle,
  type CommandResult,
  Commands,
  type ProcessInfo,
} from "./e2b/commands.ts";
export {
  AuthenticationError,
  CommandExitError,
  FileNotFoundError,
  InvalidArgumentError,
  NotEnoughSpaceError,
  NotFoundError,
  RateLimitError,
  SandboxError,
  SandboxNotFoundError,
  TimeoutError,
} from "./e2b/errors.ts";
export {
  type EntryInfo,
  Filesystem,
  type FilesystemEvent,
  type FilesystemRequestOpts,
  FileType,
  type WatchHandle,
  type WriteInfo,
} from "./e2b/filesystem.ts";
export { type SandboxInfo, type SandboxListOpts, SandboxPaginator } from "./e2b/listing.ts";
export { Pty } from "./e2b/pty.ts";
export type { ConnectionOpts } from "./e2b/request.ts";
export { Sandbox, Sandbox as default, type SandboxOpts } from "./e2b/sandbox.ts";
