package io.tributary.spark;

import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.ObjectType;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/** Creates Spark expressions in Java. */
public final class Expressions {
    private static final DataType ANY = new ObjectType(Object.class);

    private Expressions() {}

    /** Returns a column with the result of the object's public method for each argument; null for a null argument. */
    static Column call(Object object, String method, DataType result, Column argument) {
        Literal self = Literal.fromObject(object, new ObjectType(object.getClass()));
        Seq<Expression> arguments = seq(List.of(argument.expr()));
        Seq<AbstractDataType> unchecked = seq(List.of());
        return new Column(new Invoke(self, method, result, arguments, unchecked, true, true, true));
    }

    /** Returns a column with the result of the class's public method for the arguments; null if one of them is null. */
    static Column callStatic(Class<?> place, String method, DataType result, Column... arguments) {
        Expression[] found = Stream.of(arguments).map(Column::expr).toArray(Expression[]::new);
        return new Column(staticCall(place, method, result, found));
    }

    private static Expression staticCall(Class<?> place, String method, DataType result, Expression... arguments) {
        Seq<AbstractDataType> unchecked = seq(List.of());
        return new StaticInvoke(place, result, method, seq(List.of(arguments)), unchecked, true, true, true);
    }

    /** Returns the value of the expression as a type that Spark does not know. */
    static Expression asObject(Expression expression) {
        return staticCall(Expressions.class, "same", ANY, expression);
    }

    /** Returns the value. Spark's generated code calls this method. */
    public static Object same(Object value) {
        return value;
    }

    static <T> Seq<T> seq(List<T> items) {
        return JavaConverters.asScalaBuffer(items).toList();
    }
}
