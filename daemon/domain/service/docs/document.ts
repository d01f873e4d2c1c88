/** The parts of the OpenAPI document that the page of /docs uses. */

export const JSON_TYPE = "application/json";
export const PROBLEM_TYPE = "application/problem+json";

export interface Schema {
  type?: string | string[];
  enum?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  required?: string[];
  description?: string;
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
}

export interface Content {
  schema: Schema;
  example?: unknown;
  examples?: Record<string, unknown>;
}

export interface Header {
  description: string;
  schema: Schema;
  example: unknown;
}

export interface Reference {
  $ref: string;
}

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  description?: string;
  schema: Schema;
  example?: unknown;
}

export interface DocumentedOperation {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  security?: unknown[];
  "x-scope"?: string;
  /** References are headers. */
  parameters: (Parameter | Reference)[];
  requestBody?: { required: boolean; content: Record<string, Content> };
  responses: Record<string, DocumentedResponse>;
}

export interface DocumentedResponse {
  description: string;
  headers: Record<string, Reference>;
  content?: Record<string, Content>;
}

export interface Problem {
  summary: string;
  value: { status: number; retryable: boolean; hint: string | null };
}

/** The document from which the page is made. */
export interface OpenapiDocument {
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, DocumentedOperation>>;
  components: {
    parameters: Record<string, Header>;
    headers: Record<string, Header>;
    examples: Record<string, Problem>;
  };
}

/** An operation with its method and path; the names of its request headers are separate from its other parameters. */
export interface Placed extends Omit<DocumentedOperation, "parameters"> {
  parameters: Parameter[];
  /** Of the request. */
  headers: string[];
  method: string;
  path: string;
}
