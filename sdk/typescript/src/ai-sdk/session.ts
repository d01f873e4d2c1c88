/**
 * Types of the AI SDK's experimental sandbox session, as version 7 declares them. They are declared here because versions 5 and 6 lack
 * them, and projects with these versions must compile too.
 */

/** Options of a command. */
export interface RunOptions {
  command: string;
  workingDirectory?: string;
  env?: Record<string, string>;
  abortSignal?: AbortSignal;
}

export type SpawnOptions = RunOptions & { stdin?: boolean };

interface PathOptions {
  path: string;
  abortSignal?: AbortSignal;
}

type WriteOptions<Content> = PathOptions & { content: Content };

/** A process that was spawned. */
export interface SandboxProcess {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  wait(): Promise<{ exitCode: number }>;
  kill(): Promise<void>;
}

export type WritableSandboxProcess = SandboxProcess & { readonly stdin: WritableStream<Uint8Array> };

/** Commands and files of one sandbox. */
export interface SandboxSession {
  readonly description: string;
  readonly readFile: (options: PathOptions) => Promise<ReadableStream<Uint8Array> | null>;
  readonly readBinaryFile: (options: PathOptions) => Promise<Uint8Array | null>;
  readonly readTextFile: (
    options: PathOptions & { encoding?: string; startLine?: number; endLine?: number },
  ) => Promise<string | null>;
  readonly writeFile: (options: WriteOptions<ReadableStream<Uint8Array>>) => Promise<void>;
  readonly writeBinaryFile: (options: WriteOptions<Uint8Array>) => Promise<void>;
  readonly writeTextFile: (options: WriteOptions<string> & { encoding?: string }) => Promise<void>;
  readonly stat: (options: PathOptions) => Promise<{ type: "file" | "directory" | "other"; size: number } | null>;
  readonly listDirectory: (
    options: PathOptions,
  ) => Promise<{ name: string; type: "file" | "directory" | "symlink" | "other" }[] | null>;
  readonly deleteFile: (options: PathOptions) => Promise<boolean>;
  readonly spawn: {
    (options: RunOptions & { stdin: true }): Promise<WritableSandboxProcess>;
    (options: RunOptions & { stdin?: false }): Promise<SandboxProcess>;
    (options: SpawnOptions): Promise<SandboxProcess | WritableSandboxProcess>;
  };
  readonly run: (options: RunOptions) => Promise<{ exitCode: number; stdout: string; stderr: string }>;
}
