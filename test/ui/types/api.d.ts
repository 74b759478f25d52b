// Types of the remote API for the modules of the web interface, made of its OpenAPI document.
import type { paths } from "../../../build/ui-types/openapi";

type Found<M extends string, P extends keyof paths> = Lowercase<M> extends keyof paths[P] ? paths[P][Lowercase<M>] : never;
/** A path with its variables filled in. */
type Filled<P extends string> = P extends `${infer A}{${string}}${infer B}` ? `${A}${string}${Filled<B>}` : P;
/** What the document leaves open may be anything. */
type Open<T> = unknown extends T ? any : T extends (infer E)[] ? Open<E>[]
  : T extends object ? (string extends keyof T ? Record<string, any> : { [K in keyof T]: Open<T[K]> }) : T;
type Keys<T> = T extends unknown ? keyof T : never;
type Parameters<T> = T extends { parameters: infer A } ? Keys<A extends { path: infer V } ? V : never> | Keys<A extends { query?: infer Q } ? NonNullable<Q> : never> : never;
/** A body that is a word has the name of the end of its path. */
type Last<P extends string> = P extends `${string}/${infer B}` ? Last<B> : P;
type Body<T, P extends string> = T extends { requestBody?: infer B } ? (NonNullable<B> extends { content: { "application/json": infer C } } ? (C extends string ? Last<P> : Keys<C>) : never) : never;

declare global {
  namespace Api {
    type Method = "GET" | "PUT" | "POST" | "DELETE";
    /** Paths that have a method, with the names of their variables. */
    type Template<M extends Method> = { [P in keyof paths]: Found<M, P> extends { responses: unknown } ? P : never }[keyof paths];
    /** The same, as they are requested; files of the interface are read, too. */
    type Path<M extends Method> = Filled<Template<M>> | (M extends "GET" ? "/ui/commands.json" : never);
    /** Method and path of a request of the document. */
    type Request = { [M in Method]: `${M} ${Template<M>}` }[Method];
    /** Names of the arguments and parameters of a request. */
    type Name<R extends Request> = R extends `${infer M} ${infer P}` ? (P extends keyof paths ? Extract<Parameters<Found<M, P>> | Body<Found<M, P>, P>, string> : never) : never;
    /** The answer to a request whose path has no variables; of others anything. */
    type Answer<M extends Method, P extends string> = P extends keyof paths
      ? (Found<M, P> extends { responses: { 200: { content: { "application/json": infer A } } } } ? Open<A> : any) : any;
  }
}
