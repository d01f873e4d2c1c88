/** Interface of building an organization's templates: start, follow, cancel. */
import { type Static, Type } from "@sinclair/typebox";
import { errorEvent, fields, NONE, named, nullable, oneOf, operation, record, timestamp } from "./contract.ts";
import { streamQuery } from "./executions.ts";
import { anyWarnings } from "./rooms.ts";
import { egressEntryList } from "./sandboxes.ts";
import { TEMPLATE_PATTERN } from "./templates.ts";

/** Maximum of concurrent unfinished builds of an organization. */
export const MAX_BUILDS = 3;
export const MAX_BUILD_STEPS = 128;
export const MAX_SCRIPT_BYTES = 65_536;
export const MAX_DOCKERFILE_BYTES = 262_144;
/** 10 MiB in base64. */
const MAX_CONTEXT_CHARACTERS = 13_981_016;
export const MAX_BUILD_SECRETS = 32;
export const MAX_BUILD_SECRET_BYTES = 524_288;
export const SECRET_NAME_PATTERN = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$";

/** In a registry: images on the host itself belong to its operator. */
const IMAGE_PATTERN = "^docker://[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}$";

const script = (description: string) => Type.String({ minLength: 1, maxLength: MAX_SCRIPT_BYTES, description });

const from = record("TemplateFrom", {
  image: Type.Optional(Type.String({ pattern: IMAGE_PATTERN, description: "An image of a registry, as docker://…" })),
  recipe: Type.Optional(
    fields({
      from: Type.String({ pattern: IMAGE_PATTERN, description: "The image that the steps begin with." }),
      steps: Type.Array(script("A shell script that root runs in a guest of its own."), {
        minItems: 1,
        maxItems: MAX_BUILD_STEPS,
      }),
    }),
  ),
  dockerfile: Type.Optional(
    Type.String({ minLength: 1, maxLength: MAX_DOCKERFILE_BYTES, description: "The text of a Dockerfile." }),
  ),
  context: Type.Optional(
    Type.String({
      contentEncoding: "base64",
      maxLength: MAX_CONTEXT_CHARACTERS,
      description: "The build context as a tar, optionally compressed with gzip: 10 MiB at most, 128 MiB unpacked.",
    }),
  ),
});

export const BUILD_STATES = ["queued", "pulling", "building", "booting", "testing", "ready", "failed"] as const;
export type BuildState = (typeof BUILD_STATES)[number];

/** Reason for a failed build: an error of the API, without its request. */
const failure = record("BuildFailure", {
  code: Type.String(),
  detail: Type.String(),
  hint: nullable(Type.String()),
  details: Type.Record(Type.String(), Type.Unknown()),
});
export type BuildFailure = Static<typeof failure>;

const build = record("TemplateBuild", {
  template_id: Type.String(),
  build_id: Type.String(),
  state: oneOf(BUILD_STATES),
  created_at: timestamp,
  started_at: nullable(timestamp),
  finished_at: nullable(timestamp),
  last_seq: Type.Integer({ description: "The last event of its stream." }),
  digest: nullable(Type.String({ description: "Of the template, once it is ready." })),
  failure: nullable(failure),
});
export type BuildRecord = Static<typeof build>;

/** Without a pattern: an invalid name is answered with not found. */
const namedTemplate = { template_id: Type.String({ maxLength: 128 }) };
const buildPath = fields({
  ...namedTemplate,
  build_id: Type.String({ maxLength: 128, description: "The build, by its build_id." }),
});

export const templateCreate = operation({
  name: "template_create",
  extension: "template_builds",
  method: "POST",
  path: "/v1/templates",
  summary: "Build a template of the organization",
  description:
    "Answers immediately; the build continues in the background, one on a host at a time. Once it has passed its test, the template replaces the organization's own template of that name, and takes precedence over a template of the host with that name. It counts toward the plan's space for templates on the host's disk (template_mib): if that is used up, nothing is built, and a version that does not fit is not put into use. Downloads come from the registries that the host's configuration allows. Secrets and credentials are kept only in memory, until the build has ended.",
  access: "templates:write",
  params: NONE,
  query: NONE,
  body: fields({
    template_id: Type.String({
      pattern: TEMPLATE_PATTERN,
      description:
        "Name for sandboxes to use. The organization's template of that name is replaced once this one is ready.",
    }),
    from,
    description: Type.Optional(Type.String({ maxLength: 256, description: "Description in lists of templates." })),
    start: Type.Optional(
      script('A shell script whose programs run in every sandbox of it from the start; "image": its entry point.'),
    ),
    ready: Type.Optional(script("A shell script that exits with 0 once the programs of start can be used.")),
    min_memory_mib: Type.Optional(
      Type.Integer({
        minimum: 256,
        maximum: 65_536,
        multipleOf: 128,
        description: "Memory with which it is saved; 256 if absent.",
      }),
    ),
    default_memory_mib: Type.Optional(
      Type.Integer({
        minimum: 256,
        maximum: 1_048_576,
        description: "Default for sandboxes; 512 if absent, or min_memory_mib if that is more.",
      }),
    ),
    disk_mib: Type.Optional(
      Type.Integer({
        minimum: 1024,
        maximum: 1_048_576,
        description: "Maximum disk size of a sandbox; 8192 if absent.",
      }),
    ),
    egress_allowlist: Type.Optional(egressEntryList),
    secrets: Type.Optional(
      Type.Record(Type.String({ pattern: SECRET_NAME_PATTERN }), Type.String({ maxLength: MAX_BUILD_SECRET_BYTES }), {
        maxProperties: MAX_BUILD_SECRETS,
        description: "Secrets for steps, in the files /run/secrets/NAME.",
      }),
    ),
    build_args: Type.Optional(
      Type.Record(Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]{0,127}$" }), Type.String({ maxLength: 4096 }), {
        maxProperties: 64,
        description: "For ARG of the Dockerfile.",
      }),
    ),
    no_cache: Type.Optional(
      Type.Boolean({ description: "Unpack the image and run every step again, without results of earlier builds." }),
    ),
    registry_auth: Type.Optional(
      Type.String({
        minLength: 2,
        maxLength: 65_536,
        description: "Credentials for the registry, as the text of docker's config.json.",
      }),
    ),
  }),
  output: fields({ ...build.properties, warnings: anyWarnings }),
  outcomes: { accepted: 202 },
  location: "/v1/templates/{template_id}/builds/{build_id}",
  errors: [
    "already_exists",
    "quota_exceeded",
    "invalid_egress_entry",
    "conflicting_fields",
    "image_unauthorized",
    "disk_full",
  ],
  maxBodyBytes: 16 * 1024 * 1024,
  audit: "template.build_asked",
  example: {
    body: {
      template_id: "default",
      from: { recipe: { from: "docker://registry.example.com/python:3.13-slim", steps: ["pip install pytest"] } },
      egress_allowlist: ["packages.example.com:443"],
    },
  },
});

export const templateRemove = operation({
  name: "template_remove",
  extension: "template_builds",
  method: "DELETE",
  path: "/v1/templates/{template_id}",
  summary: "Remove a template of the organization",
  description: "Sandboxes that were made from it keep running. Only the operator can remove a template of the host.",
  access: "templates:write",
  params: fields(namedTemplate),
  query: NONE,
  body: null,
  output: fields({ template_id: Type.String(), state: oneOf(["removed"]) }),
  outcomes: { removed: 200 },
  errors: ["template_not_found"],
  audit: "template.removed",
});

export const templateBuildGet = operation({
  name: "template_build_get",
  extension: "template_builds",
  method: "GET",
  path: "/v1/templates/{template_id}/builds/{build_id}",
  summary: "Get a build of a template",
  access: "sandboxes:read",
  params: buildPath,
  query: NONE,
  body: null,
  output: build,
  outcomes: { ok: 200 },
  errors: ["template_build_not_found"],
  audit: "template.read",
});

const seq = Type.Integer({ description: "The event's position in the stream: the value for `after`." });

/** Events of a build's stream, besides pings. */
export const buildEvent = named(
  "BuildEvent",
  Type.Union([
    record("BuildStartedEvent", { seq, type: oneOf(["started"]), build_id: Type.String(), started_at: timestamp }),
    record("BuildStateEvent", { seq, type: oneOf(["state"]), state: oneOf(BUILD_STATES), at: timestamp }),
    record("BuildOutputEvent", { seq, type: oneOf(["stdout"]), data_b64: Type.String({ contentEncoding: "base64" }) }),
    record("BuildExitEvent", {
      seq,
      type: oneOf(["exit"]),
      exit_code: Type.Integer({ description: "0: the template is ready." }),
      state: oneOf(["ready", "failed"]),
      digest: nullable(Type.String()),
      failure: nullable(failure),
      finished_at: timestamp,
      duration_ms: Type.Integer(),
    }),
    errorEvent,
  ]),
);

export const templateBuildStream = operation({
  name: "template_build_stream",
  extension: "template_builds",
  method: "GET",
  path: "/v1/templates/{template_id}/builds/{build_id}/stream",
  summary: "Follow a build of a template",
  description:
    "Like an execution's stream: started (seq 0), stdout with a line in data_b64, state when it changes, ping every 15 s, and last exit or error. A stream without one of these two is incomplete: call again with after.",
  access: "sandboxes:read",
  params: buildPath,
  query: streamQuery("events"),
  body: null,
  headers: ["last_event_id"],
  output: buildEvent,
  outcomes: { ok: 200 },
  bytesOutput: ["application/x-ndjson", "text/event-stream"],
  errors: ["template_build_not_found"],
  audit: "template.read",
});

export const templateBuildEnd = operation({
  name: "template_build_end",
  extension: "template_builds",
  method: "DELETE",
  path: "/v1/templates/{template_id}/builds/{build_id}",
  summary: "End a build of a template",
  description: "Answers once nothing of the build remains. An ended build stays unchanged.",
  access: "templates:write",
  params: buildPath,
  query: NONE,
  body: null,
  output: build,
  outcomes: { ended: 200 },
  errors: ["template_build_not_found"],
  audit: "template.build_ended",
});
