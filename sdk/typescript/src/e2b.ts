/**
 * Drop-in for programs that were written for the JavaScript SDK of E2B: its classes by their names, on sandboxes of roomd. What differs
 * is in docs/migration.md.
 */
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
  FileType,
  type WatchHandle,
  type WriteInfo,
} from "./e2b/filesystem.ts";
export { Pty } from "./e2b/pty.ts";
export {
  Sandbox,
  Sandbox as default,
  type SandboxInfo,
  type SandboxListOpts,
  type SandboxOpts,
  SandboxPaginator,
} from "./e2b/sandbox.ts";
