/** Entry point of the SDK: a service, its rooms and its templates. */
import { Client, type ClientOptions } from "./client.ts";
import { inTime } from "./deadline.ts";
import { TemplateBuildError } from "./errors.ts";
import type { Room as RoomRecord, Template, TemplateBuild, TemplateCreateRequest } from "./generated/schemas.ts";
import { OwnRoom, Room } from "./room.ts";
import { createRoom } from "./sandbox-create.ts";
import type { CallOptions } from "./transport.ts";

/** Limits of the build output in an error: its last lines. */
const LAST_LINES = 20;
const MAX_LAST_CHARACTERS = 16 * 1024;

/** Options of a new room. */
export interface RoomOptions extends CallOptions {
  /** Name of the room; a generated one by default. */
  roomId?: string;
  /** Labels of your own, for filtering lists. */
  labels?: Record<string, string>;
  /** Lifetime in seconds: the room is destroyed after this time. */
  ttlSeconds?: number;
  /** Whether the room's drive is kept for a day at the end of an `await using` block; it is deleted by default. */
  keep?: boolean;
}

/** A roomd service. */
export class Roomd {
  /** All operations of the HTTP interface, by name. */
  readonly client: Client;

  /** Connects to a service. Options that are absent come from the environment. */
  constructor(options: ClientOptions = {}) {
    this.client = new Client(options);
  }

  /** Rooms of the organization. */
  readonly rooms = {
    /** Creates a room. The end of an `await using` block destroys it. */
    create: async ({ roomId, labels, ttlSeconds, keep = false, ...options }: RoomOptions = {}): Promise<OwnRoom> => {
      const request = {
        ...(labels === undefined ? {} : { labels }),
        ...(ttlSeconds === undefined ? {} : { ttl_seconds: ttlSeconds }),
      };
      const { room_id } = await createRoom(
        this.client,
        { ...request, ...(roomId === undefined ? {} : { room_id: roomId }) },
        options,
      );
      return new OwnRoom(this.client, room_id, { keep });
    },
    /** References an existing room. It is not destroyed at the end of a block. */
    open: (roomId: string): Room => new Room(this.client, roomId),
    /** Yields the records of all rooms. */
    list: (options: CallOptions = {}): AsyncGenerator<RoomRecord> => this.client.items("room_list", {}, options),
  };

  /** Templates that sandboxes start from. */
  readonly templates = {
    /** Describes a template. */
    get: (templateId: string, options: CallOptions = {}): Promise<Template> =>
      this.client.call("template_get", { template_id: templateId }, options),
    /** Yields all templates. */
    list: (options: CallOptions = {}): AsyncGenerator<Template> => this.client.items("template_list", {}, options),
    /** Builds a template from an image and waits until it is ready. Throws TemplateBuildError with the last lines of the output. */
    build: (
      request: TemplateCreateRequest,
      { onOutput, ...options }: CallOptions & { onOutput?(line: string): void } = {},
    ): Promise<TemplateBuild> => {
      return inTime(options, "The template was not built in time: the build continues.", async (each) => {
        const build = await this.client.call("template_create", request, each);
        let output = "";
        const name = { template_id: build.template_id, build_id: build.build_id };
        for await (const event of this.client.events("template_build_stream", name, each)) {
          if (event.type !== "stdout") continue;
          const text = Buffer.from(event.data_b64, "base64").toString();
          output = (output + text).slice(-MAX_LAST_CHARACTERS);
          onOutput?.(text);
        }
        const built = await this.client.call("template_build_get", name, each);
        if (built.state === "ready") return built;
        throw new TemplateBuildError(built, output.trimEnd().split("\n").slice(-LAST_LINES));
      });
    },
    /** Deletes a template. */
    remove: async (templateId: string, options: CallOptions = {}): Promise<void> => {
      await this.client.call("template_remove", { template_id: templateId }, options);
    },
  };

  /** Closes all connections; pending calls fail. */
  close(): void {
    this.client.close();
  }
}
