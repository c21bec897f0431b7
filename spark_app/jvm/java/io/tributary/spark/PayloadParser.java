package io.tributary.spark;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.io.IOContext;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.core.json.UTF8StreamJsonParser;
import com.fasterxml.jackson.core.sym.ByteQuadsCanonicalizer;
import java.io.IOException;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Jackson's parser of bytes that are known to be UTF-8 and are all there, whose texts are those bytes.
 *
 * <p>To get past a text Jackson looks at its bytes one by one, again where its value was taken before, of which it
 * makes characters, and Spark bytes again. Here that is one look, at eight of them at a time.
 */
final class PayloadParser extends UTF8StreamJsonParser {
    private static final Factory FACTORY = new Factory();
    private static final long OF_EACH = 0x0101010101010101L;
    private static final long QUOTES = '"' * OF_EACH;
    private static final long BACKSLASHES = '\\' * OF_EACH;
    private static final long SPACES = ' ' * OF_EACH;

    private PayloadParser(IOContext context, int features, ByteQuadsCanonicalizer names, byte[] text) {
        super(context, features, null, null, names, text, 0, text.length, 0, false);
    }

    static PayloadParser of(byte[] text) {
        return FACTORY.createParser(text);
    }

    /**
     * The text that begins here, as part of the bytes that are parsed; null where it is not written as it is, and
     * {@code getText} has to read it.
     */
    UTF8String plainText() {
        int start = _inputPtr;
        int end = endOfPlain(start);
        if (end == _inputEnd || _inputBuffer[end] != '"') {
            return null;
        }
        _inputPtr = end + 1;
        _tokenIncomplete = false;
        return bytes(start, end);
    }

    /** The JSON of the object or array that begins here, as it is written; then the parser stands at its end. */
    UTF8String jsonOfChildren() throws IOException {
        int start = _inputPtr - 1;
        skipChildren();
        return bytes(start, _inputPtr);
    }

    /** The JSON of the value at which the parser stands, as it is written; then the parser stands at its end. */
    UTF8String jsonOfValue() throws IOException {
        if (currentToken().isStructStart()) {
            return jsonOfChildren();
        }
        if (currentToken() == JsonToken.VALUE_STRING) {
            int start = _inputPtr - 1;
            _skipString();
            return bytes(start, _inputPtr);
        }
        return UTF8String.fromString(getText());
    }

    /** How many of the bytes are parsed: all up to the end of the value at which the parser stands. */
    int place() {
        return _inputPtr;
    }

    /** Called for a text whose end is not known yet. */
    @Override
    protected void _skipString() throws IOException {
        if (plainText() == null) {
            super._skipString();
        }
    }

    private UTF8String bytes(int start, int end) {
        return UTF8String.fromAddress(_inputBuffer, Platform.BYTE_ARRAY_OFFSET + start, end - start);
    }

    /** Where the first quote, backslash or control character is, which no text holds as it is; else the end. */
    private int endOfPlain(int start) {
        byte[] text = _inputBuffer;
        int at = start;
        for (; at + Long.BYTES <= _inputEnd; at += Long.BYTES) {
            long bytes = (long) Utf8.EIGHT_BYTES.get(text, at);
            // This sets the highest bit of the first byte that is lower, and of no byte before it (hasless, in
            // Anderson's Bit Twiddling Hacks).
            long found = below(bytes ^ QUOTES, OF_EACH) | below(bytes ^ BACKSLASHES, OF_EACH) | below(bytes, SPACES);
            if (found != 0) {
                return at + Long.numberOfTrailingZeros(found) / Byte.SIZE;
            }
        }
        while (at < _inputEnd && text[at] != '"' && text[at] != '\\' && (text[at] & 0xFF) >= ' ') {
            at++;
        }
        return at;
    }

    private static long below(long bytes, long limits) {
        return (bytes - limits) & ~bytes & Utf8.HIGHEST_BITS;
    }

    private static final class Factory extends JsonFactory {
        private static final long serialVersionUID = 1;

        Factory() {
            super((JsonFactoryBuilder) JsonFactory.builder()
                    .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
                    .enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER));
        }

        /** Without a look at the encoding: JSON of another one begins with what is none in UTF-8. */
        @Override
        public PayloadParser createParser(byte[] text) {
            IOContext context = _createContext(_createContentReference(text), true);
            return new PayloadParser(
                    context, _parserFeatures, _byteSymbolCanonicalizer.makeChild(_factoryFeatures), text);
        }
    }
}
